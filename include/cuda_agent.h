/* cuda_agent.h -- the contract between a native candidate and whoever calls it.
 *
 * A candidate is C or CUDA C that exports ca_forward and, if it likes, the four
 * optional functions below. It is compiled without Python and without libtorch
 * and runs in a process of its own. docs/header.md explains every field with
 * examples. SPDX-License-Identifier: Apache-2.0
 *
 * Compiles as C11, C++17 and CUDA C++.
 */
#ifndef CUDA_AGENT_H
#define CUDA_AGENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CA_VERSION 1
#define CA_RANK_MAX 8

enum ca_dtype {
    CA_F32,
    CA_F64,
    CA_F16,
    CA_BF16,
    CA_E4M3,
    CA_E5M2,
    CA_I8,
    CA_U8,
    CA_I16,
    CA_I32,
    CA_I64,
    CA_BOOL,
    CA_C64,
    CA_C128
};

enum ca_kind { CA_NONE, CA_TENSOR, CA_INT, CA_REAL, CA_FLAG, CA_TEXT };

/* One argument, parameter or output.
 *
 * name    forward's argument name; nests are "xs.0", "d.key"; outputs "out",
 *         "out.0", "out.key"; parameters by state_dict; plain tensor attributes
 *         "attr:" and their path.
 * shape   rank entries; stride: elements, may be 0 or leave gaps. Outputs are
 *         contiguous and 256-byte aligned.
 * alias   index of the entry of the same list with the same storage (tied
 *         weights), or -1.
 * data    device memory on target cuda, host memory on cpu; NULL in ca_scratch,
 *         ca_keep and, for in and out, in ca_setup.
 */
struct ca_value {
    const char *name;
    enum ca_kind kind;
    enum ca_dtype dtype;
    int rank;
    int alias;
    const int64_t *shape;
    const int64_t *stride;
    void *data;
    union {
        int64_t i; /* CA_INT, CA_FLAG */
        double r;  /* CA_REAL */
        const char *text;
    } u;
};

struct ca_list {
    int n;
    const struct ca_value *v;
};

/* version       CA_VERSION
 * device        CUDA ordinal, -1 on cpu; threads: CPU threads to use
 * sm_count      multiprocessors, 0 on cpu
 * stream        cudaStream_t to launch on, NULL on cpu
 * scratch       ca_scratch() bytes, contents undefined at every call
 * keep          ca_keep() bytes, written by ca_setup, kept between calls
 * state         what ca_setup stored in *state, or NULL
 */
struct ca_call {
    int version, device, threads, sm_count;
    struct ca_list in, param, out;
    void *stream;
    void *scratch;
    size_t scratch_bytes;
    void *keep;
    size_t keep_bytes;
    void *state;
};

/* Optional: how much memory to provide. Called before any data exists. */
size_t ca_scratch(const struct ca_call *call);
size_t ca_keep(const struct ca_call *call);

/* Optional: prepare weights (transpose, fold, pack). Runs untimed, within a time
 * limit, after every change of a parameter. 0 on success. */
int ca_setup(const struct ca_call *call, void **state);

/* Required: compute every element of every output from in, param and what
 * ca_setup prepared. Inputs may hold any finite values of their shape and dtype.
 * Work must be complete or enqueued on `stream` (or ordered before it) when this
 * returns. 0 on success; anything else is the candidate's failure. */
int ca_forward(const struct ca_call *call);

/* Optional: free what ca_setup allocated. */
void ca_teardown(void *state);

#ifdef __cplusplus
}
#endif
#endif
