/* relu(BN(x W^T + b)), BN in evaluation mode, folded into the product once per change of weights:
 * s = gamma / sqrt(var + eps), W' = s W, b' = s (b - mean) + beta. The call is one product with
 * bias and relu in its epilogue: no pass of its own for the norm. in 0: x, float32 [rows, from],
 * contiguous; out 0: [rows, to]. param, in the order of state_dict: W [to, from], b [to], gamma,
 * beta, running mean, running variance [to]; num_batches_tracked follows and is not used. For a
 * convolution, W' is the same with from = channels times taps. SPDX-License-Identifier: Apache-2.0
 */
#include <cstdlib>
#include <cublasLt.h>
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define BLOCK 256
#define EPS 1e-5f
#define WORKSPACE ((size_t)32 << 20)

enum { WEIGHT, BIAS, GAMMA, BETA, MEAN, VARIANCE };

struct norm {
    const float *bias, *gamma, *beta, *mean, *variance;
};

/* A block to a row of W. keep: W', then b'. */
__global__ void fold(const float *weight, struct norm n, float *folded, float *bias, int from)
{
    int j = (int)blockIdx.x;
    float s = n.gamma[j] / sqrtf(n.variance[j] + EPS); /* not timed: the exact root */
    for (int i = (int)threadIdx.x; i < from; i += BLOCK)
        folded[(size_t)j * from + i] = weight[(size_t)j * from + i] * s;
    if (threadIdx.x == 0)
        bias[j] = (n.bias[j] - n.mean[j]) * s + n.beta[j];
}

struct product {
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t weight, x, out;
    cublasLtMatmulHeuristicResult_t found;
};

static size_t weights_of(const struct ca_call *call)
{
    const int64_t *shape = call->param.v[WEIGHT].shape;
    return (size_t)(shape[0] * shape[1]);
}

size_t ca_keep(const struct ca_call *call)
{
    return (weights_of(call) + (size_t)call->param.v[WEIGHT].shape[0]) * sizeof(float);
}

size_t ca_scratch(const struct ca_call *call)
{
    (void)call;
    return WORKSPACE;
}

/* 0 when all is described and one way to compute it was found. */
static int prepare(struct product *p, const struct ca_call *call)
{
    int64_t rows = call->in.v[0].shape[0], from = call->in.v[0].shape[1];
    int64_t to = call->param.v[WEIGHT].shape[0];
    cublasOperation_t yes = CUBLAS_OP_T;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    const void *bias = (const float *)call->keep + weights_of(call);
    size_t room = WORKSPACE;
    cublasLtMatmulPreference_t want = NULL;
    int n = 0;
    int bad =
        cublasLtCreate(&p->lt) ||
        cublasLtMatmulDescCreate(&p->op, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F) ||
        cublasLtMatmulDescSetAttribute(p->op, CUBLASLT_MATMUL_DESC_TRANSA, &yes, sizeof yes) ||
        cublasLtMatmulDescSetAttribute(p->op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                       sizeof epilogue) ||
        cublasLtMatmulDescSetAttribute(p->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                       sizeof bias) ||
        cublasLtMatrixLayoutCreate(&p->weight, CUDA_R_32F, from, to, from) ||
        cublasLtMatrixLayoutCreate(&p->x, CUDA_R_32F, from, rows, from) ||
        cublasLtMatrixLayoutCreate(&p->out, CUDA_R_32F, to, rows, to) ||
        cublasLtMatmulPreferenceCreate(&want) ||
        cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room,
                                             sizeof room) ||
        cublasLtMatmulAlgoGetHeuristic(p->lt, p->op, p->weight, p->x, p->out, p->out, want, 1,
                                       &p->found, &n);
    if (want != NULL)
        cublasLtMatmulPreferenceDestroy(want);
    return bad || n == 0;
}

int ca_setup(const struct ca_call *call, void **state)
{
    const struct ca_value *v = call->param.v;
    struct product *p = (struct product *)calloc(1, sizeof *p);
    *state = p;
    if (p == NULL || prepare(p, call))
        return 1;
    struct norm n = { (const float *)v[BIAS].data, (const float *)v[GAMMA].data,
                      (const float *)v[BETA].data, (const float *)v[MEAN].data,
                      (const float *)v[VARIANCE].data };
    float *keep = (float *)call->keep;
    fold<<<(unsigned)v[WEIGHT].shape[0], BLOCK, 0, (cudaStream_t)call->stream>>>(
        (const float *)v[WEIGHT].data, n, keep, keep + weights_of(call), (int)v[WEIGHT].shape[1]);
    return cudaGetLastError() != cudaSuccess;
}

int ca_forward(const struct ca_call *call)
{
    const struct product *p = (const struct product *)call->state;
    const struct ca_value *x = &call->in.v[0];
    float one = 1, zero = 0;
    void *out = call->out.v[0].data;
    if (x->dtype != CA_F32 || x->stride[1] != 1 || x->stride[0] != x->shape[1])
        return 1;
    return cublasLtMatmul(p->lt, p->op, &one, call->keep, p->weight, x->data, p->x, &zero, out,
                          p->out, out, p->out, &p->found.algo, call->scratch, WORKSPACE,
                          (cudaStream_t)call->stream) != CUBLAS_STATUS_SUCCESS;
}

void ca_teardown(void *state)
{
    struct product *p = (struct product *)state;
    cublasLtMatrixLayoutDestroy(p->weight);
    cublasLtMatrixLayoutDestroy(p->x);
    cublasLtMatrixLayoutDestroy(p->out);
    cublasLtMatmulDescDestroy(p->op);
    cublasLtDestroy(p->lt);
    free(p);
}
