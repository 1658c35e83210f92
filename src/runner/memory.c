/* Shared memory and the plan: what a call's pointers point into. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/candidate_code.h"

#define ALIGN 256
#define VALUES_MAX 16384
#define THREADS_MAX 4096
#define ORDINAL_MAX 1023
#define PLAN_BYTES_MAX ((uint64_t)1 << 30)

void runner_hello(struct runner *r, struct ca_msg *m)
{
    if (r->opened || m->a < 1 || m->a > THREADS_MAX || m->b > 1 || m->c > ORDINAL_MAX) {
        answer(m, CA_REFUSED, "hello: twice, or threads, target or ordinal out of range");
        return;
    }
    r->threads = (int)m->a;
    r->cuda = m->b == 1;
    r->device = r->cuda ? (int)m->c : -1;
    int rc = r->cuda ? vmm_open(r->device) : 0;
    if (r->cuda && rc == 0 && r->host == NULL)
        rc = vmm_stream_create(&r->stream);
    if (r->cuda && rc == 0)
        rc = vmm_event_create(&r->begin);
    if (r->cuda && rc == 0)
        rc = vmm_event_create(&r->end);
    r->opened = rc == 0;
    if (rc != 0) {
        answer(m, CA_DEVICE_ERROR, "open the device: %s", vmm_error(rc));
        m->a = (uint64_t)rc;
    } else if (r->host != NULL && r->host->hello(r->threads, r->device) != 0) {
        answer(m, CA_DEVICE_ERROR, "%s", r->host->text);
    }
}

static void slab_vmm(struct runner *r, struct ca_msg *m, int fd)
{
    uint64_t address = 0, handle = 0;
    int rc = r->cuda ? vmm_import(fd, m->b, &address, &handle) : -1;
    if (rc != 0) {
        answer(m, CA_DEVICE_ERROR, "import a shared buffer: %s",
               r->cuda ? vmm_error(rc) : "device memory on target cpu");
        m->a = (uint64_t)rc;
        return;
    }
    r->slab[m->a] = (struct slab){ (unsigned char *)(uintptr_t)address, m->b };
}

static void slab_memfd(struct runner *r, struct ca_msg *m, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size < 0 || (uint64_t)st.st_size < m->b) {
        answer(m, CA_REFUSED, "a shared buffer is smaller than said");
        return;
    }
    void *p = mmap(NULL, m->b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED) {
        answer(m, CA_REFUSED, "map a shared buffer: %s", strerror(errno));
        return;
    }
    r->slab[m->a] = (struct slab){ p, m->b };
}

void runner_slab(struct runner *r, struct ca_msg *m, int fd)
{
    if (!r->opened || fd < 0 || m->a >= CA_SLABS_MAX || m->b == 0 || m->c > 1 ||
        r->slab[m->a].at != NULL) {
        answer(m, CA_REFUSED, "slab: before hello, twice, or out of range");
        return;
    }
    if (r->cuda && m->c != 1)
        answer(m, CA_REFUSED, "host memory on target cuda");
    else if (m->c == 1)
        slab_vmm(r, m, fd);
    else
        slab_memfd(r, m, fd);
}

static bool plan_sane(const struct ca_plan *p, uint64_t bytes)
{
    if (bytes < sizeof *p || p->magic != CA_MSG_MAGIC)
        return false;
    if (p->n_in < 0 || p->n_param < 0 || p->n_out < 1 || p->n_sets < 1 || p->n_sets > CA_SETS_MAX)
        return false;
    if (p->n_in > VALUES_MAX || p->n_param > VALUES_MAX || p->n_out > VALUES_MAX)
        return false;
    uint64_t values = (uint64_t)p->n_in + (uint64_t)p->n_param + (uint64_t)p->n_out;
    uint64_t places =
        (uint64_t)p->n_sets * ((uint64_t)p->n_in + (uint64_t)p->n_out) + (uint64_t)p->n_param;
    return bytes == sizeof *p + values * sizeof(struct ca_plan_value) +
                        places * sizeof(struct ca_plan_place);
}

static uint64_t dtype_bytes(int32_t dtype)
{
    static const unsigned char bytes[] = {
        [CA_F32] = 4,  [CA_F64] = 8,  [CA_F16] = 2, [CA_BF16] = 2, [CA_E4M3] = 1,
        [CA_E5M2] = 1, [CA_I8] = 1,   [CA_U8] = 1,  [CA_I16] = 2,  [CA_I32] = 4,
        [CA_I64] = 8,  [CA_BOOL] = 1, [CA_C64] = 8, [CA_C128] = 16
    };
    return dtype >= 0 && dtype <= CA_C128 ? bytes[dtype] : 0;
}

/* Bytes from the first to the last element, 0 for an empty tensor; false past 2^63. */
static bool span_bytes(const struct ca_plan_value *v, uint64_t *ret)
{
    uint64_t last = 0, step = 0, bytes = 0;
    bool empty = false;
    for (int i = 0; i < v->rank; i++)
        empty = empty || v->shape[i] == 0;
    for (int i = 0; i < v->rank && !empty; i++)
        if (__builtin_mul_overflow((uint64_t)v->shape[i] - 1, (uint64_t)v->stride[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    if (!empty && (__builtin_add_overflow(last, 1u, &last) ||
                   __builtin_mul_overflow(last, dtype_bytes(v->dtype), &bytes)))
        return false;
    *ret = bytes;
    return bytes <= INT64_MAX;
}

/* n: entries of the list that the value stands in. */
static bool value_sane(const struct ca_plan_value *v, int32_t n)
{
    uint64_t bytes;
    if (memchr(v->name, 0, sizeof v->name) == NULL || memchr(v->text, 0, sizeof v->text) == NULL)
        return false;
    if (v->kind < CA_NONE || v->kind > CA_TEXT || dtype_bytes(v->dtype) == 0 || v->rank < 0 ||
        v->rank > CA_RANK_MAX || v->alias < -1 || v->alias >= n)
        return false;
    for (int i = 0; i < v->rank; i++)
        if (v->shape[i] < 0 || v->stride[i] < 0)
            return false;
    return span_bytes(v, &bytes);
}

static bool values_sane(const struct ca_plan *p, const struct ca_plan_value *v)
{
    const int32_t n[] = { p->n_in, p->n_param, p->n_out };
    for (int list = 0; list < 3; list++)
        for (int32_t i = 0; i < n[list]; i++, v++)
            if (!value_sane(v, n[list]))
                return false;
    return true;
}

static struct ca_value value_of(const struct ca_plan_value *v, void *data)
{
    struct ca_value c = { .name = v->name,
                          .kind = (enum ca_kind)v->kind,
                          .dtype = (enum ca_dtype)v->dtype,
                          .rank = v->rank,
                          .alias = v->alias,
                          .shape = v->shape,
                          .stride = v->stride,
                          .data = data };
    if (c.kind == CA_REAL)
        c.u.r = v->r;
    else if (c.kind == CA_TEXT)
        c.u.text = v->text;
    else
        c.u.i = v->i;
    return c;
}

/* The address of a value; *ok is false when some of it would lie outside its slab. */
static void *address_of(const struct runner *r, const struct ca_plan_value *v,
                        const struct ca_plan_place *p, bool *ok)
{
    uint64_t bytes = 0;
    bool sane = v->kind != CA_TENSOR || span_bytes(v, &bytes);
    if (p->slab == -1) {
        *ok = *ok && sane && bytes == 0;
        return NULL;
    }
    if (!sane || v->kind != CA_TENSOR || p->slab < 0 || p->slab >= CA_SLABS_MAX ||
        r->slab[p->slab].at == NULL || p->offset % ALIGN != 0 ||
        p->offset > r->slab[p->slab].bytes || bytes > r->slab[p->slab].bytes - p->offset) {
        *ok = false;
        return NULL;
    }
    return r->slab[p->slab].at + p->offset;
}

static bool place_all(struct runner *r, const struct ca_plan_place *place)
{
    const struct ca_plan *p = &r->plan;
    const struct ca_plan_value *in = r->value, *param = in + p->n_in, *out = param + p->n_param;
    bool ok = true;
    for (int s = 0; s < p->n_sets; s++) {
        struct ca_value *v = r->set_value + (size_t)s * (size_t)(p->n_in + p->n_out);
        for (int i = 0; i < p->n_in; i++)
            v[i] = value_of(&in[i], address_of(r, &in[i], place++, &ok));
        for (int i = 0; i < p->n_out; i++)
            v[p->n_in + i] = value_of(&out[i], address_of(r, &out[i], place++, &ok));
    }
    for (int i = 0; i < p->n_param; i++)
        r->param[i] = value_of(&param[i], address_of(r, &param[i], place++, &ok));
    for (int i = 0; i < p->n_in; i++)
        r->bare[i] = value_of(&in[i], NULL);
    for (int i = 0; i < p->n_out; i++)
        r->bare[p->n_in + i] = value_of(&out[i], NULL);
    return ok;
}

static bool plan_room(struct runner *r)
{
    const struct ca_plan *p = &r->plan;
    size_t io = (size_t)(p->n_in + p->n_out), sets = (size_t)p->n_sets;
    r->param = calloc((size_t)p->n_param + 1, sizeof *r->param);
    r->set_value = calloc(sets * io + 1, sizeof *r->set_value);
    r->bare = calloc(io + 1, sizeof *r->bare);
    r->call = calloc(sets, sizeof *r->call);
    return r->param && r->set_value && r->bare && r->call;
}

/* As if the plan had never come. */
static void plan_drop(struct runner *r, unsigned char *bytes)
{
    free(r->param);
    free(r->set_value);
    free(r->bare);
    free(r->call);
    free(bytes);
    r->param = r->set_value = r->bare = NULL;
    r->call = NULL;
    r->value = NULL;
    r->plan = (struct ca_plan){ 0 };
}

/* The plan's bytes out of shared memory (read, not mapped: what is shared could change or
 * vanish); NULL when they cannot be had whole. */
static unsigned char *plan_copy(int fd, uint64_t size)
{
    unsigned char *bytes = malloc(size);
    uint64_t have = 0;
    while (bytes != NULL && have < size) {
        ssize_t n = pread(fd, bytes + have, size - have, (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free(bytes);
            return NULL;
        }
        have += (uint64_t)n;
    }
    return bytes;
}

/* There is one plan; its memory lives as long as the process. */
void runner_plan(struct runner *r, struct ca_msg *m, int fd)
{
    struct stat st;
    if (!r->opened || r->value != NULL || fd < 0 || fstat(fd, &st) != 0 || m->a < sizeof r->plan ||
        m->a > PLAN_BYTES_MAX || m->a > (uint64_t)st.st_size) {
        answer(m, CA_REFUSED, "plan: before hello, twice, or its size is wrong");
        return;
    }
    unsigned char *bytes = plan_copy(fd, m->a);
    if (bytes == NULL) {
        answer(m, CA_REFUSED, "read the plan");
        return;
    }
    memcpy(&r->plan, bytes, sizeof r->plan);
    r->value = (void *)(bytes + sizeof r->plan);
    if (!plan_sane(&r->plan, m->a) || !values_sane(&r->plan, r->value)) {
        answer(m, CA_REFUSED, "the plan's size, counts or values disagree");
        plan_drop(r, bytes);
        return;
    }
    size_t n = (size_t)r->plan.n_in + (size_t)r->plan.n_param + (size_t)r->plan.n_out;
    if (!plan_room(r) || !place_all(r, (const void *)(r->value + n))) {
        answer(m, CA_REFUSED, "the plan points outside its buffers, or there is no room for it");
        plan_drop(r, bytes);
    }
}
