// want: forbidden
// hacks 46, 50: dlopen
#include "row.h"

#include <dlfcn.h>

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    return dlopen("libc.so.6", RTLD_NOW) == NULL;
}
