#include "device/vmm.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* The driver's ABI, declared by hand from its public documentation. */
typedef uint64_t cu_ptr;
typedef uint64_t cu_mem;
typedef struct CUctx_st *cu_ctx;

struct cu_location {
    int type; /* 1: device */
    int id;
};

struct cu_prop {
    int type;         /* 1: pinned */
    int handle_types; /* 0: none, 1: POSIX file descriptor */
    struct cu_location location;
    void *win32;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

struct cu_access {
    struct cu_location location;
    int flags; /* 1 read, 3 read and write */
};

static struct {
    void *lib;
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*attribute)(int *, int, int);
    int (*retain)(cu_ctx *, int);
    int (*set_current)(cu_ctx);
    cu_ctx context;
    int (*granularity)(size_t *, const struct cu_prop *, int);
    int (*create)(cu_mem *, size_t, const struct cu_prop *, unsigned long long);
    int (*release)(cu_mem);
    int (*export)(void *, cu_mem, int, unsigned long long);
    int (*import)(cu_mem *, void *, int);
    int (*reserve)(cu_ptr *, size_t, size_t, cu_ptr, unsigned long long);
    int (*unreserve)(cu_ptr, size_t);
    int (*map)(cu_ptr, size_t, size_t, cu_mem, unsigned long long);
    int (*unmap)(cu_ptr, size_t);
    int (*access)(cu_ptr, size_t, const struct cu_access *, size_t);
    int (*alloc)(cu_ptr *, size_t);
    int (*free)(cu_ptr);
    int (*fill)(cu_ptr, unsigned char, size_t);
    int (*stream_create)(vmm_stream *, unsigned);
    int (*event_create)(vmm_event *, unsigned);
    int (*event_record)(vmm_event, vmm_stream);
    int (*event_ms)(float *, vmm_event, vmm_event);
    int (*synchronize)(void);
    int (*error_name)(int, const char **);
    int device, ordinal;
} cu;

#define MISSING (-1)
#define ATTRIBUTE_SM_COUNT 16

static const struct {
    const char *name;
    void **slot;
} symbols[] = {
    { "cuInit", (void **)&cu.init },
    { "cuDeviceGet", (void **)&cu.device_get },
    { "cuDeviceGetAttribute", (void **)&cu.attribute },
    { "cuDevicePrimaryCtxRetain", (void **)&cu.retain },
    { "cuCtxSetCurrent", (void **)&cu.set_current },
    { "cuMemGetAllocationGranularity", (void **)&cu.granularity },
    { "cuMemCreate", (void **)&cu.create },
    { "cuMemRelease", (void **)&cu.release },
    { "cuMemExportToShareableHandle", (void **)&cu.export },
    { "cuMemImportFromShareableHandle", (void **)&cu.import },
    { "cuMemAddressReserve", (void **)&cu.reserve },
    { "cuMemAddressFree", (void **)&cu.unreserve },
    { "cuMemMap", (void **)&cu.map },
    { "cuMemUnmap", (void **)&cu.unmap },
    { "cuMemSetAccess", (void **)&cu.access },
    { "cuMemAlloc_v2", (void **)&cu.alloc },
    { "cuMemFree_v2", (void **)&cu.free },
    { "cuMemsetD8_v2", (void **)&cu.fill },
    { "cuStreamCreate", (void **)&cu.stream_create },
    { "cuEventCreate", (void **)&cu.event_create },
    { "cuEventRecord", (void **)&cu.event_record },
    { "cuEventElapsedTime", (void **)&cu.event_ms },
    { "cuCtxSynchronize", (void **)&cu.synchronize },
    { "cuGetErrorName", (void **)&cu.error_name },
};

static int load(void)
{
    if (cu.lib != NULL)
        return 0;
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (lib == NULL)
        return MISSING;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        *symbols[i].slot = dlsym(lib, symbols[i].name);
        if (*symbols[i].slot == NULL)
            return MISSING;
    }
    cu.lib = lib;
    return 0;
}

#define TRY(call)         \
    do {                  \
        int rc_ = (call); \
        if (rc_ != 0)     \
            return rc_;   \
    } while (0)

int vmm_open(int ordinal)
{
    cu_ctx ctx = NULL;
    TRY(load());
    TRY(cu.init(0));
    TRY(cu.device_get(&cu.device, ordinal));
    TRY(cu.retain(&ctx, cu.device));
    cu.ordinal = ordinal;
    cu.context = ctx;
    return cu.set_current(ctx);
}

int vmm_enter(void)
{
    return cu.context != NULL ? cu.set_current(cu.context) : -1;
}

static struct cu_prop prop_of(int shared)
{
    return (struct cu_prop){ .type = 1,
                             .handle_types = shared ? 1 : 0,
                             .location = { .type = 1, .id = cu.ordinal } };
}

size_t vmm_granularity(void)
{
    struct cu_prop p = prop_of(1);
    size_t n = 0;
    return cu.granularity(&n, &p, 0) == 0 && n > 0 ? n : (size_t)2 << 20;
}

/* Give `handle` an address; on failure nothing is left reserved. */
static int map_whole(cu_mem handle, size_t bytes, uint64_t *ret_address)
{
    cu_ptr at = 0;
    struct cu_access access = { .location = { .type = 1, .id = cu.ordinal }, .flags = 3 };
    TRY(cu.reserve(&at, bytes, 0, 0, 0));
    int rc = cu.map(at, bytes, 0, handle, 0);
    bool mapped = rc == 0;
    if (rc == 0)
        rc = cu.access(at, bytes, &access, 1);
    if (rc != 0) {
        if (mapped)
            cu.unmap(at, bytes);
        cu.unreserve(at, bytes);
        return rc;
    }
    *ret_address = at;
    return 0;
}

int vmm_alloc(size_t bytes, int shared, uint64_t *ret_address, uint64_t *ret_handle)
{
    struct cu_prop p = prop_of(shared);
    cu_mem handle = 0;
    TRY(cu.create(&handle, bytes, &p, 0));
    int rc = map_whole(handle, bytes, ret_address);
    if (rc != 0)
        cu.release(handle);
    else
        *ret_handle = handle;
    return rc;
}

int vmm_export(uint64_t handle, int *ret_fd)
{
    return cu.export(ret_fd, handle, 1, 0);
}

int vmm_import(int fd, size_t bytes, uint64_t *ret_address, uint64_t *ret_handle)
{
    cu_mem handle = 0;
    TRY(cu.import(&handle, (void *)(uintptr_t)fd, 1));
    int rc = map_whole(handle, bytes, ret_address);
    if (rc != 0)
        cu.release(handle);
    else
        *ret_handle = handle;
    return rc;
}

int vmm_free(uint64_t address, size_t bytes, uint64_t handle)
{
    int unmapped = cu.unmap(address, bytes);
    int released = cu.release(handle);
    int unreserved = cu.unreserve(address, bytes);
    return unmapped ? unmapped : released ? released : unreserved;
}

int vmm_plain_alloc(size_t bytes, uint64_t *ret_address)
{
    return cu.alloc(ret_address, bytes);
}

int vmm_plain_free(uint64_t address)
{
    return cu.free(address);
}

int vmm_fill(uint64_t address, unsigned char value, size_t bytes)
{
    return cu.fill(address, value, bytes);
}

int vmm_sm_count(void)
{
    int n = 0;
    return cu.attribute(&n, ATTRIBUTE_SM_COUNT, cu.device) == 0 ? n : 0;
}

int vmm_stream_create(vmm_stream *ret)
{
    return cu.stream_create(ret, 1); /* does not wait for the legacy stream */
}

int vmm_event_create(vmm_event *ret)
{
    return cu.event_create(ret, 0);
}

int vmm_event_record(vmm_event e, vmm_stream s)
{
    return cu.event_record(e, s);
}

int vmm_event_ms(vmm_event from, vmm_event to, float *ret_ms)
{
    return cu.event_ms(ret_ms, from, to);
}

int vmm_synchronize(void)
{
    return cu.synchronize();
}

const char *vmm_error(int code)
{
    const char *name = NULL;
    if (code == MISSING)
        return "no CUDA driver (libcuda.so.1)";
    return cu.lib != NULL && cu.error_name(code, &name) == 0 && name ? name : "unknown CUDA error";
}
