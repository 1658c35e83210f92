// want: compile_error
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    return c->nothing_like_that;
}
