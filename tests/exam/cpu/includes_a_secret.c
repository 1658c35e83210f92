// want: compile_error
#include "row.h"

#include "/etc/passwd"
int ca_forward(const struct ca_call *c)
{
    return 0;
}
