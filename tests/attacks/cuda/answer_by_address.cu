// want: wrong
// hacks 8, 24: remembers each answer under the address of its input
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    static const void *seen[256];
    for (int i = 0; i < 256; i++) {
        if (seen[i] == c->out.v[0].data)
            return 0;
        if (seen[i] == NULL) {
            seen[i] = c->out.v[0].data;
            break;
        }
    }
    return launch(c, weight(c), 0, rows(c), 0, stream(c));
}
