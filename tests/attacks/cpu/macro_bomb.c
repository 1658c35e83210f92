// want: compile_error
// hacks 57: a macro that grows without end
#include "row.h"

#define A(x) x x x x x x x x x x
#define B(x) A(A(A(A(x))))
#define C(x) B(B(B(x)))

static const char bomb[] = C("0123456789");

int ca_forward(const struct ca_call *c)
{
    return bomb[c->in.n] != '1';
}
