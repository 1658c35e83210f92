/* runner/candidate_code.h -- the loaded candidate and the calls it gets. */
#ifndef RUNNER_CANDIDATE_CODE_H
#define RUNNER_CANDIDATE_CODE_H

#include <stdbool.h>

#include "ca_runner.h"
#include "device/vmm.h"

/* Who runs a candidate that is no C: what comes in the place of its symbols. Each returns 0, or
 * another number with a reason in `text`. Device work goes to the default stream. */
struct runner_host {
    int (*hello)(int threads, int device); /* after the context is live; device -1: cpu */
    int (*code)(int fd);
    int (*setup)(const struct ca_call *, void **state);
    int (*forward)(const struct ca_call *);
    char text[CA_TEXT_MAX];
};

struct slab {
    unsigned char *at;
    uint64_t bytes;
};

struct runner {
    const struct runner_host *host; /* NULL: the candidate is a shared object of C */
    bool cuda, opened;
    int threads, device;
    vmm_stream stream;
    vmm_event begin, end;
    struct slab slab[CA_SLABS_MAX];

    /* The plan, copied out of shared memory. */
    struct ca_plan plan;
    struct ca_plan_value *value; /* n_in + n_param + n_out */
    struct ca_value *param;      /* n_param, with data */
    struct ca_value *set_value;  /* n_sets x (n_in + n_out), with data */
    struct ca_value *bare;       /* n_in + n_out, without data */
    struct ca_call *call;        /* one for each set, ready to go */

    void *code;
    bool sized, ready; /* after ca_scratch and ca_keep; after ca_setup */
    size_t (*scratch_size)(const struct ca_call *);
    size_t (*keep_size)(const struct ca_call *);
    int (*setup)(const struct ca_call *, void **);
    int (*forward)(const struct ca_call *);
    void (*teardown)(void *);
    void *scratch, *keep, *state;
    size_t scratch_bytes, keep_bytes;
};

/* Each fills the answer's status, numbers and text. */
void runner_hello(struct runner *r, struct ca_msg *m);
void runner_slab(struct runner *r, struct ca_msg *m, int fd);
void runner_plan(struct runner *r, struct ca_msg *m, int fd);
void runner_code(struct runner *r, struct ca_msg *m, int fd);
void runner_sizes(struct runner *r, struct ca_msg *m);
void runner_setup(struct runner *r, struct ca_msg *m);
void runner_go(struct runner *r, struct ca_msg *m);

/* Answer what comes on CA_RUNNER_FD until its end; 0, or 1 when an answer could not be sent. */
int runner_serve(const struct runner_host *host);

/* From now on no thread of this process can make a POSIX timer; 0, or -1 with errno. */
int runner_no_timers(void);

/* Set status and text; text is cut at its room. */
void answer(struct ca_msg *m, enum ca_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
