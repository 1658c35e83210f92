// want: wrong
// hacks 34: leaves out the last block
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    return launch(c, weight(c), 0, rows(c) - 1, 0, stream(c));
}
