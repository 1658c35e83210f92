// want: compile_error
// hacks 50, 57: takes a file of the machine into its object by .incbin
#include "row.h"

__asm__(".incbin \"/etc/shadow\"");
int ca_forward(const struct ca_call *c)
{
    return 0;
}
