/* graph/graph.h -- a traced model: values and the ATen operators between them.
 *
 * Read from docs/graph.md's JSON, which a foreign model shaped: every index and size is
 * checked, so that what stands here can be used without looking again. Memory: the arena's.
 * Errors: ERR_FORMAT, ERR_LIMIT.
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

#define GRAPH_RANK_MAX 8
#define GRAPH_VALUES_MAX 65536
#define GRAPH_NODES_MAX 65536
#define GRAPH_ARGS_MAX 4096 /* elements of one list */

enum graph_dtype {
    GRAPH_F32,
    GRAPH_F64,
    GRAPH_F16,
    GRAPH_BF16,
    GRAPH_INT,
    GRAPH_BOOL,
    GRAPH_OTHER
};

struct gshape {
    int rank;
    int64_t dim[GRAPH_RANK_MAX];
};

/* Where a value comes from. */
enum gsource { GRAPH_FROM_NODE, GRAPH_FROM_INPUT, GRAPH_FROM_PARAM, GRAPH_FROM_CONST };

struct gvalue {
    const char *name;
    const char *dtype_name; /* "f32", "i64", ... */
    enum graph_dtype dtype;
    struct gshape shape;
    int64_t stride[GRAPH_RANK_MAX]; /* elements */
    enum gsource source;
    int node;           /* producer, for GRAPH_FROM_NODE */
    int place;          /* index in the signature's list, for inputs and parameters */
    int uses;           /* by nodes and as outputs */
    const double *data; /* GRAPH_FROM_CONST: all elements */
    int64_t n_data;
};

enum garg_kind { GARG_NONE, GARG_VALUE, GARG_INT, GARG_REAL, GARG_FLAG, GARG_TEXT, GARG_LIST };

struct garg {
    enum garg_kind kind;
    int64_t i; /* value id, integer, flag */
    double r;
    const char *text;
    const struct garg *item;
    int n;
};

struct gnode {
    const char *op; /* "aten.add.Tensor" */
    struct garg *in;
    int n_in;
    const char **key; /* keyword names */
    struct garg *kw;
    int n_kw;
    int *out; /* value ids; -1: a result that is no tensor */
    int n_out;
};

struct graph {
    struct gvalue *value;
    int n_values;
    struct gnode *node;
    int n_nodes;
    int *output; /* value ids */
    int n_outputs;
    struct arena *arena;
};

MUST_USE
enum err_code graph_parse(struct arena *a, const json_t *j, struct graph *ret, struct err *err);

int64_t gshape_count(const struct gshape *s);
bool gshape_equal(const struct gshape *a, const struct gshape *b);

/* The operator without its "aten." and overload: "add" of "aten.add.Tensor". */
struct str gnode_name(const struct gnode *n);

/* Keyword argument by name, or NULL. */
const struct garg *gnode_kw(const struct gnode *n, const char *key);

/* The number of an argument, `none` where it is absent or None. */
double garg_number(const struct garg *a, double none);

/* A new value or node at the end (a rewrite makes them); pointers to old ones go stale. */
int graph_value_add(struct graph *g, const struct gvalue *like);
int graph_node_add(struct graph *g, const struct gnode *n);

#endif
