// want: wrong
// hacks 43: an answer made once, for every call
#include "row.h"

#include <stdlib.h>

int ca_forward(const struct ca_call *c)
{
    static float *answer;
    size_t bytes = (size_t)(rows(c) * c->in.v[0].shape[1]) * sizeof(float);
    if (answer == NULL) {
        compute(c, 0, rows(c), weight(c));
        answer = malloc(bytes);
        memcpy(answer, c->out.v[0].data, bytes);
    }
    memcpy(c->out.v[0].data, answer, bytes);
    return 0;
}
