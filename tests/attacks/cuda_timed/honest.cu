// want: pass
// honest: one block a row
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    return launch(c, weight(c), 0, rows(c), 0, stream(c));
}
