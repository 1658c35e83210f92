/* task/task.h -- a task as a person hands it over, and its signature.
 *
 * A task is a Python file in KernelBench's format: class Model(nn.Module),
 * get_inputs(), get_init_inputs(). C never parses Python: the worker loads the
 * source and answers with the signature.
 */
#ifndef TASK_TASK_H
#define TASK_TASK_H

#include <jansson.h>
#include <stdint.h>

#include "task/candidate.h"

#define TASK_SOURCE_MAX ((size_t)4 << 20)
#define VALUES_MAX 4096 /* inputs, parameters or outputs of one task */

struct task {
    const char *name; /* file name without .py */
    const char *path; /* as given */
    struct str source;
    char hash[HASH_HEX];
};

MUST_USE
enum err_code task_read(struct arena *a, const char *path, struct task *ret, struct err *err);

/* One value of the signature; numbers as enum ca_kind and enum ca_dtype of
 * include/cuda_agent.h, which the worker sends by name ("tensor", "f32"). */
struct value_sig {
    const char *name;
    int kind, dtype, rank, alias;
    int64_t shape[8], stride[8];
    int64_t bytes; /* storage that the strides span; 0 for what is no tensor */
    int64_t i;
    double r;
    const char *text;
};

struct sig_list {
    size_t n;
    struct value_sig *v;
};

struct signature {
    struct sig_list in, param, out;
};

/* From the worker's JSON {"in":[...],"param":[...],"out":[...]} (docs/worker.md). */
MUST_USE
enum err_code signature_parse(struct arena *a, const json_t *j, struct signature *ret,
                              struct err *err);

/* One line a value: "in  x        f32 [64, 1024]". For task check and prompts. */
void signature_print(const struct signature *s, struct buf *b);

#endif
