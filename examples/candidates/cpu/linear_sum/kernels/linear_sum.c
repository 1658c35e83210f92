/* The sum over the outputs of a linear layer: sum_j (x . w_j + b_j) = x . (sum_j w_j) + sum_j b_j.
 * The weights are summed once in ca_setup; a call is then one dot product a row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda_agent.h"

/* keep: dim floats of summed weights, then the summed bias. */
size_t ca_keep(const struct ca_call *call)
{
    return (size_t)(call->param.v[0].shape[1] + 1) * sizeof(float);
}

int ca_setup(const struct ca_call *call, void **state)
{
    const float *weight = call->param.v[0].data, *bias = call->param.v[1].data;
    int64_t cols = call->param.v[0].shape[0], dim = call->param.v[0].shape[1];
    float *sum = call->keep;
    (void)state;
    for (int64_t d = 0; d < dim; d++) {
        double s = 0; /* untimed: spend it on precision */
        for (int64_t j = 0; j < cols; j++)
            s += weight[j * dim + d];
        sum[d] = (float)s;
    }
    double b = 0;
    for (int64_t j = 0; j < cols; j++)
        b += bias[j];
    sum[dim] = (float)b;
    return 0;
}

int ca_forward(const struct ca_call *call)
{
    const float *x = call->in.v[0].data, *sum = call->keep;
    int64_t rows = call->in.v[0].shape[0], dim = call->in.v[0].shape[1];
    float *out = call->out.v[0].data;
#pragma omp parallel for num_threads(call->threads) schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * dim;
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int64_t d = 0; d < dim; d++)
            s += row[d] * sum[d];
        out[r] = s + sum[dim];
    }
    return 0;
}
