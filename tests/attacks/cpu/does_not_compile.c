// want: compile_error
// fault: a member that is not there
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    return c->nothing_like_that;
}
