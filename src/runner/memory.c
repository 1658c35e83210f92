/* Shared memory and the plan: what a call's pointers point into. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "runner/candidate_code.h"

#define ALIGN 256
#define VALUES_MAX 16384

void runner_hello(struct runner *r, struct ca_msg *m)
{
    if (r->opened || m->a < 1 || m->a > 4096) {
        answer(m, CA_REFUSED, "hello");
        return;
    }
    r->threads = (int)m->a;
    r->cuda = m->b == 1;
    r->device = r->cuda ? (int)m->c : -1;
    int rc = r->cuda ? vmm_open(r->device) : 0;
    if (r->cuda && rc == 0)
        rc = vmm_stream_create(&r->stream);
    if (r->cuda && rc == 0)
        rc = vmm_event_create(&r->begin);
    if (r->cuda && rc == 0)
        rc = vmm_event_create(&r->end);
    r->opened = rc == 0;
    if (rc != 0) {
        answer(m, CA_DEVICE_ERROR, "open the device: %s", vmm_error(rc));
        m->a = (uint64_t)rc;
    }
}

void runner_slab(struct runner *r, struct ca_msg *m, int fd)
{
    if (!r->opened || fd < 0 || m->a >= CA_SLABS_MAX || m->b == 0 || r->slab[m->a].at != NULL) {
        answer(m, CA_REFUSED, "slab");
        return;
    }
    struct slab s = { .bytes = m->b };
    if (m->c == 1) {
        uint64_t address = 0, handle = 0;
        int rc = r->cuda ? vmm_import(fd, s.bytes, &address, &handle) : -1;
        if (rc != 0) {
            answer(m, CA_DEVICE_ERROR, "import a shared buffer: %s", vmm_error(rc));
            return;
        }
        s.at = (unsigned char *)(uintptr_t)address;
    } else {
        struct stat st;
        void *p = fstat(fd, &st) == 0 && (uint64_t)st.st_size >= s.bytes
                      ? mmap(NULL, s.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                      : MAP_FAILED;
        if (p == MAP_FAILED) {
            answer(m, CA_REFUSED, "map a shared buffer: %s", strerror(errno));
            return;
        }
        s.at = p;
    }
    r->slab[m->a] = s;
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

static bool value_sane(const struct ca_plan_value *v)
{
    if (memchr(v->name, 0, sizeof v->name) == NULL || memchr(v->text, 0, sizeof v->text) == NULL)
        return false;
    return v->rank >= 0 && v->rank <= CA_RANK_MAX;
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

/* The address of a place, NULL with *ok false when it lies outside its slab. */
static void *address_of(const struct runner *r, const struct ca_plan_place *p, bool *ok)
{
    if (p->slab == -1)
        return NULL;
    if (p->slab < 0 || p->slab >= CA_SLABS_MAX || r->slab[p->slab].at == NULL ||
        p->offset > r->slab[p->slab].bytes || p->offset % ALIGN != 0) {
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
            v[i] = value_of(&in[i], address_of(r, place++, &ok));
        for (int i = 0; i < p->n_out; i++)
            v[p->n_in + i] = value_of(&out[i], address_of(r, place++, &ok));
    }
    for (int i = 0; i < p->n_param; i++)
        r->param[i] = value_of(&param[i], address_of(r, place++, &ok));
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

/* The plan's bytes out of shared memory, checked as a whole; NULL with the answer given. */
static unsigned char *plan_copy(struct runner *r, struct ca_msg *m, int fd)
{
    void *shared = mmap(NULL, m->a, PROT_READ, MAP_PRIVATE, fd, 0);
    if (shared == MAP_FAILED) {
        answer(m, CA_REFUSED, "map the plan: %s", strerror(errno));
        return NULL;
    }
    unsigned char *bytes = malloc(m->a);
    if (bytes != NULL)
        memcpy(bytes, shared, m->a);
    munmap(shared, m->a);
    if (bytes != NULL && m->a >= sizeof r->plan)
        memcpy(&r->plan, bytes, sizeof r->plan);
    bool sane = bytes != NULL && plan_sane(&r->plan, m->a);
    const struct ca_plan_value *values = sane ? (const void *)(bytes + sizeof r->plan) : NULL;
    size_t n = sane ? (size_t)(r->plan.n_in + r->plan.n_param + r->plan.n_out) : 0;
    for (size_t i = 0; i < n; i++)
        sane = sane && value_sane(&values[i]);
    if (!sane) {
        answer(m, CA_REFUSED, "the plan's size, counts or values disagree");
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Keep the memory of the process life long: there is one plan. */
void runner_plan(struct runner *r, struct ca_msg *m, int fd)
{
    struct stat st;
    if (!r->opened || r->value != NULL || fd < 0 || fstat(fd, &st) != 0 ||
        m->a > (uint64_t)st.st_size || m->a > (uint64_t)1 << 30) {
        answer(m, CA_REFUSED, "plan");
        return;
    }
    unsigned char *bytes = plan_copy(r, m, fd);
    if (bytes == NULL)
        return;
    r->value = (void *)(bytes + sizeof r->plan);
    size_t n = (size_t)(r->plan.n_in + r->plan.n_param + r->plan.n_out);
    if (!plan_room(r) || !place_all(r, (const void *)(r->value + n)))
        answer(m, CA_REFUSED, "the plan points outside its buffers");
}
