/* The same bits on 1,000 inputs? Mutant and right kernel side by side, outside of the exam. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "cuda_agent.h"
#include "mutants/mutants.h"

#define INPUTS 1000

struct device { /* how to get at the memory that a kernel reads */
    int (*alloc)(void **, size_t);
    int (*copy)(void *, const void *, size_t, int); /* cudaMemcpyDefault: 4 */
    int (*wait)(void);
};

static int host_alloc(void **p, size_t n)
{
    *p = aligned_alloc(256, (n + 255) / 256 * 256);
    return *p == NULL;
}

static int host_copy(void *to, const void *from, size_t n, int kind)
{
    (void)kind;
    memcpy(to, from, n);
    return 0;
}

static int host_wait(void)
{
    return 0;
}

/* The runtime that the kernel itself was linked with. */
static bool device_of(void *so, enum target target, struct device *d)
{
    *d = (struct device){ host_alloc, host_copy, host_wait };
    if (target == TARGET_CPU)
        return true;
    *(void **)&d->alloc = dlsym(so, "cudaMalloc");
    *(void **)&d->copy = dlsym(so, "cudaMemcpy");
    *(void **)&d->wait = dlsym(so, "cudaDeviceSynchronize");
    return d->alloc != NULL && d->copy != NULL && d->wait != NULL;
}

struct stage {
    struct device d;
    struct ca_call call;
    struct ca_value value[3][8];
    void *host[3][8]; /* in, param, out */
    const struct sig_list *list[3];
    int64_t below;
    uint64_t random;
};

static double normal(uint64_t *state)
{
    double u = ((double)(mix(++*state) >> 11) + 0.5) / 9007199254740992.0;
    double v = (double)(mix(++*state) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

__extension__ typedef _Float16 half;

static uint16_t half_of(float f)
{
    half h = (half)f;
    uint16_t u;
    memcpy(&u, &h, 2);
    return u;
}

static uint16_t brain_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static void fill(struct stage *s, const struct value_sig *v, void *host, double scale)
{
    for (int64_t at = 0, i = 0; at < v->bytes; i++) {
        float f = (float)(normal(&s->random) * scale);
        char *to = (char *)host + at;
        if (v->dtype == CA_F32) {
            memcpy(to, &f, 4);
            at += 4;
        } else if (v->dtype == CA_I64) {
            int64_t n = (int64_t)(mix(++s->random) % (uint64_t)(s->below > 0 ? s->below : 2));
            memcpy(to, &n, 8);
            at += 8;
        } else {
            uint16_t h = v->dtype == CA_F16 ? half_of(f) : brain_of(f);
            memcpy(to, &h, 2);
            at += 2;
        }
    }
}

static bool lay(struct stage *s, int which, const struct sig_list *list, struct ca_list *ret)
{
    s->list[which] = list;
    for (size_t i = 0; i < list->n && i < 8; i++) {
        const struct value_sig *v = &list->v[i];
        void *data = NULL;
        s->host[which][i] = malloc((size_t)v->bytes);
        if (s->host[which][i] == NULL || s->d.alloc(&data, (size_t)v->bytes) != 0)
            return false;
        s->value[which][i] = (struct ca_value){ .name = v->name,
                                                .kind = (enum ca_kind)v->kind,
                                                .dtype = (enum ca_dtype)v->dtype,
                                                .rank = v->rank,
                                                .alias = -1,
                                                .shape = v->shape,
                                                .stride = v->stride,
                                                .data = data };
    }
    *ret = (struct ca_list){ (int)list->n, s->value[which] };
    return true;
}

static bool send_values(struct stage *s, int which, double scale)
{
    for (size_t i = 0; i < s->list[which]->n; i++) {
        const struct value_sig *v = &s->list[which]->v[i];
        if (which == 2)
            memset(s->host[2][i], 0x3c, (size_t)v->bytes);
        else
            fill(s, v, s->host[which][i], scale);
        if (s->d.copy(s->value[which][i].data, s->host[which][i], (size_t)v->bytes, 4) != 0)
            return false;
    }
    return true;
}

typedef int (*forward_fn)(const struct ca_call *);
typedef int (*setup_fn)(const struct ca_call *, void **);

/* The outputs of one call over the same bits as before, appended to `all`. */
static bool answer(struct stage *s, forward_fn forward, char *all)
{
    for (size_t i = 0; i < s->list[2]->n; i++)
        if (s->d.copy(s->value[2][i].data, s->host[2][i], (size_t)s->list[2]->v[i].bytes, 4) != 0)
            return false;
    if (forward(&s->call) != 0 || s->d.wait() != 0)
        return false;
    for (size_t i = 0; i < s->list[2]->n; i++) {
        size_t bytes = (size_t)s->list[2]->v[i].bytes;
        if (s->d.copy(all, s->value[2][i].data, bytes, 4) != 0)
            return false;
        all += bytes;
    }
    return true;
}

static size_t out_bytes(const struct signature *sig)
{
    size_t n = 0;
    for (size_t i = 0; i < sig->out.n; i++)
        n += (size_t)sig->out.v[i].bytes;
    return n;
}

/* *inside: the kernel's struct mutant in this process. */
static bool same_bits(struct stage *s, void *so, const struct mutant *m, size_t bytes)
{
    static const double scales[] = { 1, 0.1, 10, 100 };
    forward_fn forward;
    setup_fn setup;
    struct mutant *inside = dlsym(so, "ca_mutant");
    char *right = malloc(bytes), *got = malloc(bytes);
    bool same = inside != NULL && right != NULL && got != NULL;
    *(void **)&forward = dlsym(so, "ca_forward");
    *(void **)&setup = dlsym(so, "ca_setup");
    for (int i = 0; i < INPUTS && same; i++) {
        same = (i % 50 != 0 || send_values(s, 1, 1)) && send_values(s, 0, scales[i % 4]) &&
               send_values(s, 2, 1);
        for (int side = 0; side < 2 && same; side++) {
            inside->kind = side == 0 ? 0 : m->kind;
            inside->a = m->a;
            inside->b = m->b;
            if (i % 50 == 0 && setup != NULL)
                same = setup(&s->call, &s->call.state) == 0 && s->d.wait() == 0;
            same = same && answer(s, forward, side == 0 ? right : got);
        }
        same = same && memcmp(right, got, bytes) == 0;
    }
    free(right);
    free(got);
    return same;
}

enum err_code equivalent(struct run *r, struct exam *x, const struct kernel *k,
                         const struct mutant *m, bool *ret, struct err *err)
{
    const struct signature *sig = exam_signature(x);
    struct stage *s = calloc(1, sizeof *s);
    void *so = dlopen(k->so, RTLD_NOW | RTLD_LOCAL);
    size_t (*keep)(const struct ca_call *), (*scratch)(const struct ca_call *);
    if (s == NULL || so == NULL || !device_of(so, r->target, &s->d)) {
        free(s);
        return err_raise(err, ERR_SYSTEM, "load '%s': %s", k->so, dlerror());
    }
    s->below = k->below;
    s->random = (uint64_t)r->seed;
    s->call = (struct ca_call){ .version = CA_VERSION,
                                .device = r->target == TARGET_CUDA ? 0 : -1,
                                .threads = 2,
                                .sm_count = 132 };
    bool good = lay(s, 0, &sig->in, &s->call.in) && lay(s, 1, &sig->param, &s->call.param) &&
                lay(s, 2, &sig->out, &s->call.out);
    *(void **)&keep = dlsym(so, "ca_keep");
    *(void **)&scratch = dlsym(so, "ca_scratch");
    s->call.keep_bytes = keep ? keep(&s->call) : 0;
    s->call.scratch_bytes = scratch ? scratch(&s->call) : 0;
    good = good && s->d.alloc(&s->call.keep, s->call.keep_bytes + 256) == 0 &&
           s->d.alloc(&s->call.scratch, s->call.scratch_bytes + 256) == 0;
    *ret = good && same_bits(s, so, m, out_bytes(sig));
    free(s); /* the buffers go with the process: few mutants come this far */
    return good ? OK : err_raise(err, ERR_SYSTEM, "lay out the inputs of '%s'", k->name);
}
