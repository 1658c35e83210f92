/* Loading the candidate and calling it. */
#include "runner/candidate_code.h"
#include "runner/kernel_clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALIGN 256
#define POISON 0x7b /* scratch holds nonsense when it is new: 1e36 as a float, 61280 as a half */

/* POSIX lets an object pointer from dlsym be a function; C needs to be told. */
static void symbol(void *code, const char *name, void *slot)
{
    void *p = dlsym(code, name);
    memcpy(slot, &p, sizeof p);
}

static void host_code(struct runner *r, struct ca_msg *m, int fd)
{
    if (r->host->code(fd) != 0) {
        answer(m, CA_LOAD_FAILED, "%s", r->host->text);
        return;
    }
    r->setup = r->host->setup;
    r->forward = r->host->forward;
}

void runner_code(struct runner *r, struct ca_msg *m, int fd)
{
    char path[32];
    if (r->value == NULL || r->code != NULL || r->forward != NULL || fd < 0) {
        answer(m, CA_REFUSED, "code before its plan, or twice");
        return;
    }
    if (runner_no_timers() != 0) {
        answer(m, CA_REFUSED, "give up timers: %s", strerror(errno));
        return;
    }
    if (r->host != NULL) {
        host_code(r, m, fd);
        return;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    r->code = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (r->code == NULL) {
        answer(m, CA_LOAD_FAILED, "%s", dlerror());
        return;
    }
    symbol(r->code, "ca_scratch", &r->scratch_size);
    symbol(r->code, "ca_keep", &r->keep_size);
    symbol(r->code, "ca_setup", &r->setup);
    symbol(r->code, "ca_forward", &r->forward);
    symbol(r->code, "ca_teardown", &r->teardown);
    if (r->forward == NULL)
        answer(m, CA_LOAD_FAILED, "ca_forward is not exported (C++ and CUDA: extern \"C\")");
}

static struct ca_call call_base(const struct runner *r)
{
    return (struct ca_call){ .version = CA_VERSION,
                             .device = r->device,
                             .threads = r->threads,
                             .sm_count = r->cuda ? vmm_sm_count() : 0,
                             .param = { r->plan.n_param, r->param },
                             .stream = r->stream,
                             .scratch = r->scratch,
                             .scratch_bytes = r->scratch_bytes,
                             .keep = r->keep,
                             .keep_bytes = r->keep_bytes,
                             .state = r->state };
}

/* A call whose inputs and outputs have shapes and no data. */
static struct ca_call call_bare(const struct runner *r)
{
    struct ca_call c = call_base(r);
    c.in = (struct ca_list){ r->plan.n_in, r->bare };
    c.out = (struct ca_list){ r->plan.n_out, r->bare + r->plan.n_in };
    return c;
}

static bool room(struct runner *r, size_t bytes, void **ret)
{
    if (bytes == 0) {
        *ret = NULL;
        return true;
    }
    size_t whole = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (whole < bytes)
        return false;
    if (r->cuda) {
        uint64_t address = 0;
        /* The candidate's stream does not wait for the fill: it has to be over. */
        if (vmm_plain_alloc(whole, &address) != 0 || vmm_fill(address, POISON, whole) != 0 ||
            vmm_synchronize() != 0)
            return false;
        *ret = (void *)(uintptr_t)address;
        return true;
    }
    *ret = aligned_alloc(ALIGN, whole);
    if (*ret == NULL)
        return false;
    memset(*ret, POISON, whole);
    return true;
}

static void ready_calls(struct runner *r)
{
    int io = r->plan.n_in + r->plan.n_out;
    for (int s = 0; s < r->plan.n_sets; s++) {
        r->call[s] = call_base(r);
        r->call[s].in = (struct ca_list){ r->plan.n_in, r->set_value + (size_t)s * (size_t)io };
        r->call[s].out = (struct ca_list){ r->plan.n_out, r->call[s].in.v + r->plan.n_in };
    }
}

/* Asks with shapes only: no data exists yet, parameters included. */
static bool ask_sizes(struct runner *r)
{
    struct ca_value *shapes = calloc((size_t)r->plan.n_param + 1, sizeof *shapes);
    if (shapes == NULL)
        return false;
    for (int i = 0; i < r->plan.n_param; i++) {
        shapes[i] = r->param[i];
        shapes[i].data = NULL;
    }
    struct ca_call c = call_bare(r);
    c.param.v = shapes;
    r->scratch_bytes = r->scratch_size ? r->scratch_size(&c) : 0;
    r->keep_bytes = r->keep_size ? r->keep_size(&c) : 0;
    free(shapes);
    return true;
}

void runner_sizes(struct runner *r, struct ca_msg *m)
{
    if (r->forward == NULL || r->sized) {
        answer(m, CA_REFUSED, "sizes before code, or twice");
        return;
    }
    r->sized = true;
    if (!ask_sizes(r)) {
        answer(m, CA_NO_MEMORY, "no room for the shapes");
        m->a = (uint64_t)r->plan.n_param * sizeof(struct ca_value);
        return;
    }
    m->a = r->scratch_bytes;
    m->b = r->keep_bytes;
    if (room(r, r->scratch_bytes, &r->scratch) && room(r, r->keep_bytes, &r->keep)) {
        r->ready = r->setup == NULL;
        ready_calls(r);
        return;
    }
    answer(m, CA_NO_MEMORY, "no room for scratch (%zu bytes) and keep (%zu bytes)",
           r->scratch_bytes, r->keep_bytes);
    m->a = r->scratch_bytes + r->keep_bytes;
    if (m->a < r->scratch_bytes)
        m->a = UINT64_MAX;
}

static bool device_failed(struct runner *r, struct ca_msg *m, const char *when)
{
    int rc = r->cuda ? vmm_synchronize() : 0;
    if (rc == 0)
        return false;
    answer(m, CA_DEVICE_ERROR, "%s: %s", when, vmm_error(rc));
    m->a = (uint64_t)rc;
    return true;
}

void runner_setup(struct runner *r, struct ca_msg *m)
{
    /* Where there was no room for scratch or keep, there are no calls. */
    if (!r->sized || r->call[0].version == 0) {
        answer(m, CA_REFUSED, "setup before sizes");
        return;
    }
    if (r->state != NULL && r->teardown != NULL)
        r->teardown(r->state);
    r->state = NULL;
    r->ready = false;
    struct ca_call c = call_bare(r);
    int rc = r->setup ? r->setup(&c, &r->state) : 0;
    if (rc != 0) {
        if (r->host != NULL)
            answer(m, CA_CALL_FAILED, "%s", r->host->text);
        else
            answer(m, CA_CALL_FAILED, "ca_setup returned %d", rc);
        m->a = (uint64_t)rc;
        r->state = NULL; /* who fails frees what is its own */
    } else if (!device_failed(r, m, "ca_setup")) {
        r->ready = true;
        ready_calls(r);
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The span is informative: the clock that pays is the examiner's. */
static uint64_t span_ns(struct runner *r, uint64_t t0)
{
    float ms = 0;
    if (!r->cuda)
        return now_ns() - t0;
    return vmm_event_ms(r->begin, r->end, &ms) == 0 && ms > 0 ? (uint64_t)(ms * 1e6f) : 0;
}

void runner_go(struct runner *r, struct ca_msg *m)
{
    if (!r->ready || m->a < 1 || m->a > CA_SETS_MAX) {
        answer(m, CA_REFUSED, "go before sizes and setup, or too many calls");
        return;
    }
    for (uint64_t i = 0; i < m->a; i++)
        if (m->set[i] >= r->plan.n_sets) {
            answer(m, CA_REFUSED, "set %d of %d", m->set[i], r->plan.n_sets);
            return;
        }
    bool kernels = r->cuda && m->b == 1;
    const char *why = kernels ? kernel_clock_open() : NULL;
    if (why != NULL) {
        answer(m, CA_REFUSED, "sum of kernel times: %s", why);
        return;
    }
    if (kernels)
        (void)kernel_clock_take();
    int rc = 0;
    uint64_t t0 = now_ns(), n = m->a;
    if (r->cuda)
        vmm_event_record(r->begin, r->stream);
    for (uint64_t i = 0; i < n && rc == 0; i++)
        rc = r->forward(&r->call[m->set[i]]);
    if (r->cuda)
        vmm_event_record(r->end, r->stream);
    if (rc != 0) {
        int device = r->cuda ? vmm_synchronize() : 0;
        if (r->host != NULL)
            answer(m, CA_CALL_FAILED, "%s", r->host->text);
        else
            answer(m, CA_CALL_FAILED, "ca_forward returned %d%s%s", rc, device ? ", device: " : "",
                   device ? vmm_error(device) : "");
        m->a = (uint64_t)rc;
    } else if (!device_failed(r, m, "ca_forward")) {
        m->a = span_ns(r, t0);
        m->b = kernels ? kernel_clock_take() : 0;
    }
}
