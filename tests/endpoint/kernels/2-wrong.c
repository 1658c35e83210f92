/* mish(x) * gate, then the root-mean-square norm of each row: one step after the other. */
#include <math.h>

#include "cuda_agent.h"

int ca_forward(const struct ca_call *call)
{
    const float *x = call->in.v[0].data, *gate = call->in.v[1].data;
    const float *weight = call->param.v[0].data;
    float *out = call->out.v[0].data;
    int64_t rows = call->in.v[0].shape[0], dim = call->in.v[0].shape[1];
    for (int64_t i = 0; i < rows * dim; i++)
        out[i] = x[i] * tanhf(log1pf(expf(x[i])));
    for (int64_t i = 0; i < rows * dim; i++)
        out[i] *= gate[i];
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < dim; i++)
            sum += (double)out[r * dim + i] * out[r * dim + i];
        float scale = (float)(1 / sqrt(sum + 1e-6));
        for (int64_t i = 0; i < dim; i++)
            out[r * dim + i] *= scale * weight[i];
    }
    return 0;
}
