// want: compile_error
// hacks 57: includes a file of the machine
#include "row.h"

#include "/etc/passwd"
int ca_forward(const struct ca_call *c)
{
    return 0;
}
