// want: pass
// honest, beside hacks 2: threads that are done when it returns
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    int64_t n = rows(c), part = (n + 7) / 8;
#pragma omp parallel for
    for (int p = 0; p < 8; p++)
        compute(c, p * part, (p + 1) * part < n ? (p + 1) * part : n, weight(c));
    return 0;
}
