/* harness/exam_int.h -- inside of the part: a session's state and the steps of a grading. */
#ifndef HARNESS_EXAM_INT_H
#define HARNESS_EXAM_INT_H

#include "harness/exam.h"
#include "harness/fork_server.h"
#include "harness/runner.h"
#include "harness/stats.h"
#include "harness/worker.h"
#include "reward/reward.h"

#define SLABS 2
#define POOL_MAX 4
#define POOL_LEAST 2 /* refilled when fewer wait: contexts that come up hold up a grading */
#define FORK_FOLDERS_MAX 10
#define FAMILIES_MAX 16
#define PYTORCH_ARMS 7

/* PyTorch's own ways; the first two pay the published reward, all stand for best. */
struct pytorch_arm {
    const char *name;  /* docs/worker.md, `run` */
    const char *shown; /* "compile+tf32" */
    bool cuda_only, on_demand;
    bool other_precision; /* than PyTorch's default: judged like a candidate */
    bool known;           /* measured, or found not to run */
    bool prepared;        /* compiled and warm in the worker that lives now */
    bool right;           /* by the rule that candidates are judged by: else it is no rival */
    struct samples samples;
    struct arm_time time; /* windows == 0: does not run here */
};

struct exam {
    struct arena arena; /* as long as the session */
    struct exam_config cfg;
    struct task task;
    struct worker *worker;
    json_t *hello, *bind;
    struct signature sig;
    struct toolchain tools;
    struct torch_facts torch;
    const char *arch, *device, *uuid, *versions; /* borrowed from hello */
    const char *library_path;
    char *family[FAMILIES_MAX];
    int n_families;
    int slab_fd[SLABS], plan_fd;
    uint64_t slab_bytes[SLABS], plan_bytes;
    bool slab_vmm[SLABS];
    int n_sets;
    struct fork_server *fork; /* once a torch candidate was graded */
    const char *fork_folder[FORK_FOLDERS_MAX];
    size_t n_fork_folders;
    struct {
        struct runner *v[POOL_MAX];
        int n;
    } pool[CONTRACTS];
    double eager_us;                               /* rough, from load */
    double overhead_worker_us, overhead_runner_us; /* of a window: exam.md 4, h */
    double first_us[CONTRACTS]; /* what the first call of a window may take more, honestly */
    double bandwidth;           /* bytes a second of a large copy */
    int64_t floor_bytes;
    double floor_flops, floor_us;
    int64_t out_bytes;
    struct pytorch_arm arm[PYTORCH_ARMS];
    bool baselines_known, calibrated;
    bool bound; /* cpu: threads have a core each */
    int lock_fd;
    const char *noop_so, *spin_so, *torch_so;
};

/* What was built. */
struct program {
    const char *so_path; /* NULL: nothing */
    enum contract contract;
};

/* ---- exam.c ---- */
void exam_say(const struct exam *x, const char *fmt, ...) FORMAT(2, 3);

/* The device among gradings: together while they verify, alone while one times. Asking anew
 * exchanges what is held. */
enum exam_hold { HOLD_TOGETHER, HOLD_ALONE };
MUST_USE
enum err_code exam_lock(struct exam *x, enum exam_hold hold, struct err *err);
void exam_unlock(struct exam *x);
/* What an empty window costs, measured before the first that counts, while no candidate lives: who
 * only verifies need not have the device alone. */
MUST_USE
enum err_code exam_calibrate(struct exam *x, struct err *err);
MUST_USE
enum err_code exam_torch_spin(struct exam *x, struct err *err); /* fills torch_so */

/* ERR_MISSING when an MPS daemon listens in `dir` (NULL or "": its default): it runs all contexts
 * as one, and no window could tell who computes. */
MUST_USE
enum err_code exam_refuse_mps(const char *dir, struct err *err);
MUST_USE
enum err_code exam_revive(struct exam *x, struct err *err); /* after the worker died */
MUST_USE
enum err_code exam_runner(struct exam *x, enum contract contract, struct runner **ret,
                          struct err *err);
/* Outside windows only. */
MUST_USE
enum err_code exam_refill(struct exam *x, enum contract contract, struct err *err);
MUST_USE
enum err_code exam_fork_server(struct exam *x, struct err *err); /* start it, once */

/* ---- window.c ---- */

/* What one window gave. */
struct window {
    double us;      /* per call, the window's own cost taken off; max with the device span */
    double span_us; /* per call, as the runner says; informative */
    bool is_void;   /* somebody computed meanwhile: repeat */
    int stale;      /* blocks that were not there at t1 and changed later */
    bool wrong;     /* a call that was compared in full */
    struct runner_reply reply; /* of a candidate's window */
};

/* Calls in one window so that its own cost is small beside them. */
int window_calls(const struct exam *x, double call_us);

MUST_USE
enum err_code window_arm(struct exam *x, const char *arm, int calls, struct window *ret,
                         struct err *err);

/* How many calls of a window are compared in full, drawn from the kernel's randomness once it has
 * closed; those whose outputs were not written come on top. Every window is looked at: a median is
 * moved by no fewer than half of them. */
enum window_look { LOOK_NEVER, LOOK_ONE, LOOK_TWO };
MUST_USE
enum err_code window_candidate(struct exam *x, struct runner *r, int calls, double call_us,
                               enum window_look some, struct window *ret, struct err *err);
/* Measure how much longer the first call of a window of torch's takes, once: Python is cold after a
 * stop. */
MUST_USE
enum err_code window_calibrate_torch(struct exam *x, struct err *err);
/* Measure what an empty window costs, for both sides. */
MUST_USE
enum err_code window_calibrate(struct exam *x, struct err *err);

/* ---- runner steps, grade.c ---- */
enum step { STEP_READY, STEP_CODE, STEP_SIZES, STEP_SETUP, STEP_GO };

/* Load a shared object into a fresh runner and set it up; a failure is in *ret. */
MUST_USE
enum err_code candidate_load(struct runner *r, const char *so_path, enum step *ret_step,
                             struct runner_reply *ret, double *ret_setup_ms, int64_t *ret_keep,
                             struct err *err);
int64_t go_limit_ms(const struct exam *x, int calls);
bool reply_failed(const struct runner_reply *r);

/* ---- verify.c ---- */
struct verify_result {
    int64_t first_ms; /* see struct grade_options */
    bool pass;
    enum step step; /* where the runner failed, when it did */
    struct runner_reply reply;
    bool inputs_changed;
};
MUST_USE
enum err_code verify_candidate(struct exam *x, struct runner *r, const struct grade_options *opt,
                               struct verdict *v, struct verify_result *ret, struct err *err);

/* ---- baseline.c ---- */
MUST_USE
enum err_code baseline_all(struct exam *x, struct err *err);
const struct pytorch_arm *baseline_best(const struct exam *x); /* fastest; eager at least */
MUST_USE
enum err_code baseline_prepare(struct exam *x, struct pytorch_arm *arm, bool *ret_ready,
                               struct err *err);

/* ---- kernels.c ---- */

/* The published workdir's clock, beside the one that pays: fills v->kernels_us or a note why not.
 */
MUST_USE
enum err_code kernels_sum(struct exam *x, struct program p, struct verdict *v, struct err *err);

/* ---- timing.c ---- */
struct timed {
    struct program program;
    struct runner *runner;          /* of a candidate that was verified in it */
    const struct rehearsal *played; /* instead of both, or NULL */
};
MUST_USE
enum err_code timing_candidate(struct exam *x, const struct timed *what,
                               const struct grade_options *opt, struct verdict *v,
                               struct verify_result *ret, struct err *err);

#endif
