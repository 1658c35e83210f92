/* ca_runner.h -- what the examiner and the runner say to each other.
 *
 * The runner is the boxed program that loads a candidate. It inherits one
 * SOCK_SEQPACKET socket as CA_RUNNER_FD; every datagram is one struct ca_msg, in
 * both directions, and the runner answers each with exactly one of the same op
 * and seq. Descriptors travel to the runner only (SCM_RIGHTS beside the message);
 * what a runner sends beside its bytes is dropped. The runner learns no value, no
 * seed, no tolerance and no verdict, and nothing that it says is believed except
 * "I failed": times and answers are taken by others.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CA_RUNNER_H
#define CA_RUNNER_H

#include "cuda_agent.h"

#define CA_RUNNER_FD 3
#define CA_MSG_MAGIC 0x43414d31u /* "CAM1" */
#define CA_TEXT_MAX 256
#define CA_NAME_MAX 128
#define CA_SETS_MAX 256 /* input sets that can exist at once */
#define CA_SLABS_MAX 64 /* shared buffers */

enum ca_op {
    CA_OP_HELLO =
        1, /* a: threads, b: 1 for cuda and c: CUDA ordinal; answered when the context is live */
    CA_OP_SLAB,  /* fd: memory; a: slab index, b: bytes, c: 0 memfd, 1 CUDA VMM handle */
    CA_OP_PLAN,  /* fd: memfd with struct ca_plan and its tables; a: bytes */
    CA_OP_CODE,  /* fd: the shared object; answered after dlopen and symbol look-up */
    CA_OP_SIZES, /* calls ca_scratch/ca_keep and allocates; answer a: scratch, b: keep bytes */
    CA_OP_SETUP, /* calls ca_teardown (if any state) and ca_setup */
    CA_OP_GO, /* a: number of calls, set[]: which set each uses; answered when the device is idle;
                 answer a: device span in nanoseconds (cuda; informative);
                 b 1 (cuda): answer b: sum of kernel times in nanoseconds by CUPTI (informative) */
    CA_OP_BYE
};

enum ca_status {
    CA_DONE = 0,
    CA_REFUSED,     /* the message made no sense */
    CA_LOAD_FAILED, /* dlopen or a missing symbol; text says which */
    CA_CALL_FAILED, /* a candidate function returned non-zero; a: its value */
    CA_NO_MEMORY,   /* scratch or keep could not be had; a: bytes wanted */
    CA_DEVICE_ERROR /* CUDA reported an error; a: its number; text: its name */
};

struct ca_msg {
    uint32_t magic;
    uint32_t op;  /* enum ca_op */
    uint32_t seq; /* the answer repeats it */
    int32_t status;
    uint64_t a, b, c;
    char text[CA_TEXT_MAX]; /* NUL-terminated; from a runner: untrusted, for display */
    uint16_t set[CA_SETS_MAX];
};

/* The plan: struct ca_plan, then n_in + n_param + n_out struct ca_plan_value,
 * then the place table: for set 0 its n_in inputs and n_out outputs, for set 1
 * the same, ..., then the n_param parameters. All offsets are from the start of
 * the slab; a value that is no tensor has slab -1 and its value inline. */
struct ca_plan {
    uint32_t magic;
    int32_t n_in, n_param, n_out, n_sets;
    int32_t reserved; /* 0; what follows is aligned to 8 */
};

struct ca_plan_value {
    char name[CA_NAME_MAX];
    int32_t kind, dtype, rank, alias;
    int64_t shape[CA_RANK_MAX], stride[CA_RANK_MAX];
    int64_t i;
    double r;
    char text[CA_NAME_MAX];
};

struct ca_plan_place {
    int64_t slab; /* -1: no memory */
    uint64_t offset;
};

#endif
