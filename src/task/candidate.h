/* task/candidate.h -- what an author hands in: source files for one target. */
#ifndef TASK_CANDIDATE_H
#define TASK_CANDIDATE_H

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

enum target { TARGET_CUDA, TARGET_CPU };
const char *target_name(enum target t); /* "cuda", "cpu" */

/* design: native is C and CUDA C behind cuda_agent.h; torch is the published CUDA-Agent work
 * folder: model_new.py with class ModelNew, and kernels/ with its bindings. */
enum contract { CONTRACT_NATIVE, CONTRACT_TORCH };
#define CONTRACTS 2
const char *contract_name(enum contract c); /* "native", "torch" */

#define MODEL_NEW "model_new.py"
#define CANDIDATE_FILES_MAX 64
#define CANDIDATE_FILE_BYTES_MAX ((size_t)1 << 20)
#define HASH_HEX 33 /* 128 bits of SHA-256, hex, NUL */

struct source_file {
    const char *name; /* "row_softmax.cu": no folder, [A-Za-z0-9_.-] */
    struct str text;
};

struct candidate {
    enum target target;
    enum contract contract;
    const char *author;  /* "playbook", "llm", "flags", "hand" */
    char hash[HASH_HEX]; /* of target, contract, names and texts, sorted by name */
    struct source_file file[CANDIDATE_FILES_MAX];
    size_t n_files;
    const char *unread; /* names in kernels/ with endings that no compiler here takes, or NULL */
};

/* Read DIR/kernels/ (or DIR itself when it has none): *.cu *.cuh *.c *.h for cuda, *.c *.h for cpu.
 * With DIR/model_new.py it is a torch candidate: that file, and *.cpp *.hpp of kernels/ as well.
 * Opened with O_NOFOLLOW; links, folders and oversized files are ERR_FORMAT. */
MUST_USE
enum err_code candidate_read(struct arena *a, const char *dir, enum target target,
                             struct candidate *ret, struct err *err);

/* Sort the files by name and fill hash from them. */
void candidate_seal(struct candidate *c);

/* SHA-256 of the parts one after another, each preceded by its length; first 128 bits in hex. */
void hash_parts(const struct str *part, size_t n, char ret[HASH_HEX]);

#endif
