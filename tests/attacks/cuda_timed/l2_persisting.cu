// want: pass
// hacks 14: asks the cache to hold on to its input through the flush
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    cudaStreamAttrValue a = {};
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, (size_t)1 << 30);
    a.accessPolicyWindow.base_ptr = c->in.v[0].data;
    a.accessPolicyWindow.num_bytes = (size_t)24 << 20;
    a.accessPolicyWindow.hitRatio = 1;
    a.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    a.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(stream(c), cudaStreamAttributeAccessPolicyWindow, &a);
    cudaGetLastError();
    return launch(c, weight(c), 0, rows(c), 0, stream(c));
}
