/* Masked softmax in one visit of each row: the row stays in the first-level cache between
 * the search for its maximum, the exponentials and the division.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda_agent.h"

/* e^x for x <= 0 in a form that vectorises: x = n ln 2 + r, |r| <= ln 2 / 2, e^r by its series
 * to the 7th power (relative error below 1e-7), 2^n by the exponent's bits. Below -87 it is 0 to
 * float's normal range. */
static inline float exp_neg(float x)
{
    float low = x < -87.0f ? -87.0f : x;
    float n = (low * 1.44269504f + 12582912.0f) - 12582912.0f; /* to the nearest whole number */
    float r = (low - n * 0.693359375f) + n * 2.12194440e-4f;   /* ln 2 in two pieces */
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    union {
        int32_t bits;
        float value;
    } scale = { .bits = ((int32_t)n + 127) << 23 };
    return x < -87.0f ? 0.0f : p * scale.value;
}

static void row_softmax(const float *x, const uint8_t *keep, float *y, int64_t n)
{
    float top = -3.4028235e38f, sum = 0.0f;
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < n; i++) {
        float v = keep[i] ? x[i] : -1e9f;
        y[i] = v;
        top = v > top ? v : top;
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        y[i] = exp_neg(y[i] - top);
        sum += y[i];
    }
    float scale = 1.0f / sum; /* at least one term is e^0 */
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] *= scale;
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *scores = &call->in.v[0];
    const float *x = scores->data;
    const uint8_t *keep = call->in.v[1].data; /* bool: one byte each */
    float *out = call->out.v[0].data;
    int64_t n = scores->shape[3], rows_each = scores->shape[1] * scores->shape[2];
    int64_t rows = scores->shape[0] * rows_each;
#pragma omp parallel for num_threads(call->threads) schedule(static)
    for (int64_t r = 0; r < rows; r++)
        row_softmax(x + r * n, keep + r / rows_each * n, out + r * n, n);
    return 0;
}
