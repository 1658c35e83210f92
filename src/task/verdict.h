/* task/verdict.h -- the answer of the exam, version 1. docs/verdict.md explains each field.
 *
 * Plain data: the examiner writes it, reward, store, reports and authors read it.
 */
#ifndef TASK_VERDICT_H
#define TASK_VERDICT_H

#include <jansson.h>
#include <stdbool.h>

#include "task/candidate.h"

#define VERDICT_SCHEMA "cuda-agent/verdict/1"

#define VERDICT_STATUSES(X)                   \
    X(VERDICT_PASS, "pass")                   \
    X(VERDICT_WRONG, "wrong")                 \
    X(VERDICT_COMPILE_ERROR, "compile_error") \
    X(VERDICT_CRASHED, "crashed")             \
    X(VERDICT_TIMEOUT, "timeout")             \
    X(VERDICT_SETUP_TIMEOUT, "setup_timeout") \
    X(VERDICT_FORBIDDEN, "forbidden")         \
    X(VERDICT_TAMPERED, "tampered")           \
    X(VERDICT_UNDECIDED, "undecided")

enum verdict_status {
#define X(id, name) id,
    VERDICT_STATUSES(X)
#undef X
};

#define PRECISIONS(X)    \
    X(PREC_FP32, "fp32") \
    X(PREC_TF32, "tf32") \
    X(PREC_FP16, "fp16") X(PREC_BF16, "bf16") X(PREC_FP8, "fp8") X(PREC_NONE, "none")

enum precision {
#define X(id, name) id,
    PRECISIONS(X)
#undef X
};

#define PRESETS(X)                           \
    X(PRESET_CUDA_AGENT, "cuda-agent", 1e-2) \
    X(PRESET_KERNELBENCH, "kernelbench", 1e-4) X(PRESET_STRICT, "strict", 1e-5)

enum preset {
#define X(id, name, tol) id,
    PRESETS(X)
#undef X
};

enum against { AGAINST_PAPER, AGAINST_BEST }; /* eager and compile; or best-of-PyTorch too */

enum arm { ARM_CANDIDATE, ARM_EAGER, ARM_COMPILE, ARM_BEST, ARM_COUNT };

struct arm_time { /* microseconds per call; n == 0: not measured */
    double median, lo, hi;
    int windows, void_windows;
};

struct ratio { /* arm over candidate: above 1 is faster; lo..hi is the 95% interval */
    double median, lo, hi;
};

struct check { /* one output under one input family */
    char family[32], output[64];
    int64_t misses, n, first; /* first: flat index of the first miss, -1 */
    double max_err, rel_l2;
    double got, want; /* values at `first` */
};

#define CHECKS_MAX 256
#define NOTES_MAX 16

struct verdict {
    char id[40];
    char task_hash[HASH_HEX], task_name[128];
    char candidate_hash[HASH_HEX];
    char author[32];
    enum contract contract;
    enum target target;
    enum verdict_status status;
    char reason[512];
    char build_log[4096]; /* what the compiler said, from its start, when it failed */
    enum preset preset;
    double tol_used;
    enum precision precision;
    double rel_l2;
    struct check check[CHECKS_MAX];
    int n_checks;
    struct arm_time time_us[ARM_COUNT];
    char best_name[32]; /* which PyTorch arm is best: "compile+tf32", "graph(eager)" */
    double span_us;
    double alone_us;              /* a call in a window of its own; time_us is of many */
    double kernels_us[ARM_COUNT]; /* sum of kernel times a call, where asked for; best: never */
    double setup_ms;
    int64_t keep_bytes;
    struct ratio vs_eager, vs_compile, vs_best;
    enum against against; /* what the milestone is paid against */
    int reward_milestone; /* -1, 1, 2, 3 */
    double reward_speedup;
    int64_t floor_bytes;
    double floor_flops, floor_us, floor_share; /* share: floor_us / candidate time */
    char device_uuid[64], device_name[96], driver[32], clocks[128], throttle[64];
    char torch_version[48], compiler_version[64], cuda_version[32], product_version[32];
    int box_rung;
    char box_limits_by[16];
    char note[NOTES_MAX][160];
    int n_notes;
    int64_t cost_build_ms, cost_start_ms, cost_check_ms, cost_time_ms;
};

/* Every check passed: a pass, or undecided, where only the clock could not tell. */
bool verdict_right(const struct verdict *v);

const char *verdict_status_name(enum verdict_status s);
const char *precision_name(enum precision p);
const char *preset_name(enum preset p);
double preset_tol(enum preset p);

/* printf one note; silently dropped past NOTES_MAX. */
void verdict_note(struct verdict *v, const char *fmt, ...) FORMAT(2, 3);

json_t *verdict_json(const struct verdict *v); /* a new reference */
MUST_USE
enum err_code verdict_from_json(const json_t *j, struct verdict *ret, struct err *err);

/* Text that a person reads in ten seconds. */
void verdict_print(const struct verdict *v, struct buf *b);

#endif
