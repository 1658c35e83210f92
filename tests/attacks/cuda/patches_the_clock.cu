// want: pass
// hacks 16: brings event functions of its own, which say that no time went by
#include "row.cuh"

/* The examiner's clock is in another process, and the larger of the two counts. */
extern "C" cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
    *ms = 0;
    return cudaSuccess;
}

extern "C" int cuEventElapsedTime(float *ms, void *, void *)
{
    *ms = 0;
    return 0;
}

extern "C" int ca_forward(const struct ca_call *c)
{
    return launch(c, weight(c), 0, rows(c), 0, stream(c));
}
