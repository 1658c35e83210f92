/* app/session.h -- the options that every command with an exam shares, and opening one. */
#ifndef APP_SESSION_H
#define APP_SESSION_H

#include "core/field.h"
#include "harness/exam.h"
#include "reward/reward.h"

struct session_options {
    int target; /* index into session_targets */
    int preset, against, sandbox;
    struct str python;
    int64_t threads, device;
    double mem_gib;
    bool json, max_autotune, no_store;
};

extern const char *const session_targets[]; /* auto, cuda, cpu */
extern const char *const session_presets[];
extern const char *const session_againsts[];
extern const char *const session_sandboxes[]; /* in the order of enum box_choice */

#define SESSION_FIELDS(o)                                                                       \
    FIELD_CHOICE("target", &(o).target, session_targets, "where the kernels run"),              \
        FIELD_CHOICE("preset", &(o).preset, session_presets, "tolerance: 1e-2, 1e-4, 1e-5"),    \
        FIELD_CHOICE("against", &(o).against, session_againsts,                                 \
                     "gate: best of PyTorch's own ways, or the paper's eager and compile"),     \
        FIELD_TEXT("python", &(o).python, "python3 that imports torch"),                        \
        FIELD_INT("threads", &(o).threads, 0, 1024, "CPU threads of every arm; 0: all cores"),  \
        FIELD_INT("device", &(o).device, 0, 63, "CUDA device"),                                 \
        FIELD_REAL("mem_gib", &(o).mem_gib, 0, 4096, "memory limit of a runner; 0: a quarter"), \
        FIELD_CHOICE("sandbox", &(o).sandbox, session_sandboxes,                                \
                     "what must wall foreign code in; disposable: also nothing"),               \
        FIELD_FLAG("max_autotune", &(o).max_autotune, "one more PyTorch arm (slow)"),           \
        FIELD_FLAG("no_store", &(o).no_store, "keep no baselines and verdicts"),                \
        FIELD_FLAG("json", &(o).json, "print one JSON object instead of text")

/* Fill cfg; *ret_store is owned by the caller (NULL with no_store). */
MUST_USE
enum err_code session_config(struct arena *a, const struct session_options *o,
                             struct exam_config *cfg, struct store **ret_store, struct err *err);

void session_say(const char *line); /* progress on stderr */

#endif
