/* gelu(x w + b) by rows: (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)), with an exp that vectorises.
 * x, y: [rows, dim]; w, b: [dim]. */
#pragma GCC optimize("finite-math-only", "no-signed-zeros") /* or min and max do not vectorise */
#include <stdint.h>

/* 2^k e^r with r = x - k ln 2, e^r to the sixth power: 2e-7 relative. Adding 1.5 2^23 leaves k in
 * the low bits, which become the exponent. x within [-87, 87]. */
static inline float exp_fast(float x)
{
    const float magic = 12582912.0f;
    float t = x * 1.44269504f + magic, k = t - magic;
    float r = x - k * 0.693145752f - k * 1.42860677e-6f;
    float p =
        1 +
        r * (1 + r * (0.5f + r * (0.166666667f + r * (0.0416666667f +
                                                      r * (0.00833333333f + r * 0.00138888889f)))));
    union {
        float f;
        int32_t i;
    } a = { t }, b;
    b.i = (a.i + 127) << 23;
    return p * b.f;
}

void scale_gelu_launcher(float *restrict y, const float *restrict x, const float *restrict w,
                         const float *restrict b, long rows, long dim)
{
#pragma omp parallel for
    for (long r = 0; r < rows; r++) {
#pragma omp simd
        for (long i = 0; i < dim; i++) {
            float v = x[r * dim + i] * w[i] + b[i];
            float u = 0.7978845608f * (v + 0.044715f * v * v * v);
            y[r * dim + i] =
                v / (1.0f + exp_fast(__builtin_fminf(__builtin_fmaxf(-2.0f * u, -87.0f), 87.0f)));
        }
    }
}
