#include "graph/graph.h"

#include <math.h>

#include "core/json.h"

static const struct {
    const char *name;
    enum graph_dtype dtype;
} dtypes[] = { { "f32", GRAPH_F32 },   { "f64", GRAPH_F64 }, { "f16", GRAPH_F16 },
               { "bf16", GRAPH_BF16 }, { "i8", GRAPH_INT },  { "u8", GRAPH_INT },
               { "i16", GRAPH_INT },   { "i32", GRAPH_INT }, { "i64", GRAPH_INT },
               { "bool", GRAPH_BOOL } };

int64_t gshape_count(const struct gshape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

bool gshape_equal(const struct gshape *a, const struct gshape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

static enum err_code shape_read(const json_t *list, struct gshape *ret, struct err *err)
{
    size_t n = json_array_size(list);
    int64_t count = 1;
    if (n > GRAPH_RANK_MAX)
        return err_raise(err, ERR_LIMIT, "a value of %zu dimensions", n);
    ret->rank = (int)n;
    for (size_t i = 0; i < n; i++) {
        ret->dim[i] = (int64_t)json_integer_value(json_array_get(list, i));
        if (ret->dim[i] < 0 ||
            (ret->dim[i] > 0 && __builtin_mul_overflow(count, ret->dim[i], &count)) ||
            count > (int64_t)1 << 48)
            return err_raise(err, ERR_LIMIT, "a dimension of %lld", (long long)ret->dim[i]);
    }
    return OK;
}

static enum err_code value_read(struct arena *a, const json_t *j, struct gvalue *v, struct err *err)
{
    struct str name, dtype;
    json_t *shape = NULL, *stride = NULL;
    if (json_get_text(j, "name", &name, err) != OK ||
        json_get_text(j, "dtype", &dtype, err) != OK ||
        json_get_list(j, "shape", &shape, err) != OK ||
        json_get_list(j, "stride", &stride, err) != OK || shape_read(shape, &v->shape, err) != OK)
        return err->code;
    if (json_array_size(stride) != json_array_size(shape))
        return err_raise(err, ERR_FORMAT, "strides of '%.*s'", STR_FMT(name));
    for (int i = 0; i < v->shape.rank; i++)
        v->stride[i] = (int64_t)json_integer_value(json_array_get(stride, (size_t)i));
    v->name = str_z(a, name);
    v->dtype_name = str_z(a, dtype);
    v->dtype = GRAPH_OTHER;
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (str_eq(dtype, str_from(dtypes[i].name)))
            v->dtype = dtypes[i].dtype;
    v->node = v->place = -1;
    const json_t *data = json_object_get(j, "const");
    if (data == NULL)
        return OK;
    v->n_data = (int64_t)json_array_size(data);
    if (v->n_data != gshape_count(&v->shape))
        return err_raise(err, ERR_FORMAT, "constant '%s' has %lld elements", v->name,
                         (long long)v->n_data);
    double *to = arena_new(a, double, (size_t)v->n_data);
    for (int64_t i = 0; i < v->n_data; i++)
        to[i] = json_number_value(json_array_get(data, (size_t)i));
    v->data = to;
    v->source = GRAPH_FROM_CONST;
    return OK;
}

static enum err_code arg_read(struct graph *g, const json_t *j, int depth, struct garg *ret,
                              struct err *err);

static enum err_code list_read(struct graph *g, const json_t *l, int depth, struct garg *ret,
                               struct err *err)
{
    size_t n = json_array_size(l);
    if (n > GRAPH_ARGS_MAX || depth > 4)
        return err_raise(err, ERR_LIMIT, "an argument list of %zu", n);
    struct garg *item = arena_new(g->arena, struct garg, n);
    for (size_t i = 0; i < n; i++)
        if (arg_read(g, json_array_get(l, i), depth + 1, &item[i], err) != OK)
            return err->code;
    *ret = (struct garg){ .kind = GARG_LIST, .item = item, .n = (int)n };
    return OK;
}

static double real_of(const json_t *j)
{
    const char *text = json_string_value(j);
    if (text == NULL)
        return json_number_value(j);
    return strcmp(text, "inf") == 0 ? INFINITY : strcmp(text, "-inf") == 0 ? -INFINITY : NAN;
}

static enum err_code arg_read(struct graph *g, const json_t *j, int depth, struct garg *ret,
                              struct err *err)
{
    const json_t *x;
    *ret = (struct garg){ .kind = GARG_NONE };
    if (json_is_null(j))
        return OK;
    if ((x = json_object_get(j, "v")) != NULL) {
        int64_t id = (int64_t)json_integer_value(x);
        if (!json_is_integer(x) || id < 0 || id >= g->n_values)
            return err_raise(err, ERR_FORMAT, "value %lld of %d", (long long)id, g->n_values);
        *ret = (struct garg){ .kind = GARG_VALUE, .i = id };
        g->value[id].uses++;
    } else if ((x = json_object_get(j, "i")) != NULL) {
        *ret = (struct garg){ .kind = GARG_INT, .i = (int64_t)json_integer_value(x) };
    } else if ((x = json_object_get(j, "r")) != NULL) {
        *ret = (struct garg){ .kind = GARG_REAL, .r = real_of(x) };
    } else if ((x = json_object_get(j, "b")) != NULL) {
        *ret = (struct garg){ .kind = GARG_FLAG, .i = json_is_true(x) };
    } else if ((x = json_object_get(j, "s")) != NULL || (x = json_object_get(j, "d")) != NULL) {
        const char *text = json_string_value(x);
        *ret =
            (struct garg){ .kind = GARG_TEXT, .text = str_z(g->arena, str_from(text ? text : "")) };
    } else if ((x = json_object_get(j, "l")) != NULL) {
        return list_read(g, x, depth, ret, err);
    } else {
        return err_raise(err, ERR_FORMAT, "an argument of no known kind");
    }
    return OK;
}

static enum err_code node_read(struct graph *g, const json_t *j, int at, struct err *err)
{
    struct gnode *n = &g->node[at];
    struct str op;
    json_t *in = NULL, *kw = NULL, *out = NULL, *x;
    const char *key;
    if (json_get_text(j, "op", &op, err) != OK || json_get_list(j, "in", &in, err) != OK ||
        json_get_map(j, "kw", &kw, err) != OK || json_get_list(j, "out", &out, err) != OK)
        return err->code;
    n->op = str_z(g->arena, op);
    struct garg all;
    if (list_read(g, in, 0, &all, err) != OK)
        return err->code;
    n->in = (struct garg *)(uintptr_t)all.item;
    n->n_in = all.n;
    n->key = arena_new(g->arena, const char *, json_object_size(kw));
    n->kw = arena_new(g->arena, struct garg, json_object_size(kw));
    json_object_foreach(kw, key, x)
    {
        n->key[n->n_kw] = str_z(g->arena, str_from(key));
        if (arg_read(g, x, 0, &n->kw[n->n_kw++], err) != OK)
            return err->code;
    }
    n->n_out = (int)json_array_size(out);
    n->out = arena_new(g->arena, int, (size_t)n->n_out);
    for (int i = 0; i < n->n_out; i++) {
        int64_t id = (int64_t)json_integer_value(json_array_get(out, (size_t)i));
        if (id < -1 || id >= g->n_values || (id >= 0 && g->value[id].node >= 0))
            return err_raise(err, ERR_FORMAT, "result %lld of '%s'", (long long)id, n->op);
        n->out[i] = (int)id;
        if (id >= 0)
            g->value[id].node = at;
    }
    return OK;
}

static enum err_code places_read(struct graph *g, const json_t *list, enum gsource source,
                                 struct err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *x = json_array_get(list, i);
        int64_t id = (int64_t)json_integer_value(x);
        if (json_is_null(x))
            continue;
        if (id < 0 || id >= g->n_values)
            return err_raise(err, ERR_FORMAT, "value %lld of %d", (long long)id, g->n_values);
        g->value[id].source = source;
        g->value[id].place = (int)i;
    }
    return OK;
}

/* Operands stand before their use: nodes are in execution order. */
static enum err_code check_order(const struct graph *g, struct err *err)
{
    for (int v = 0; v < g->n_values; v++)
        if (g->value[v].source == GRAPH_FROM_NODE && g->value[v].node < 0 && g->value[v].uses > 0)
            return err_raise(err, ERR_FORMAT, "'%s' comes from nowhere", g->value[v].name);
    for (int n = 0; n < g->n_nodes; n++)
        for (int i = 0; i < g->node[n].n_in; i++) {
            const struct garg *a = &g->node[n].in[i];
            if (a->kind == GARG_VALUE && g->value[a->i].node >= n)
                return err_raise(err, ERR_FORMAT, "'%s' uses what comes later", g->node[n].op);
        }
    return OK;
}

enum err_code graph_parse(struct arena *a, const json_t *j, struct graph *ret, struct err *err)
{
    json_t *values = NULL, *nodes = NULL, *inputs = NULL, *params = NULL, *outputs = NULL;
    struct graph g = { .arena = a };
    if (json_get_list(j, "values", &values, err) != OK ||
        json_get_list(j, "nodes", &nodes, err) != OK ||
        json_get_list(j, "inputs", &inputs, err) != OK ||
        json_get_list(j, "params", &params, err) != OK ||
        json_get_list(j, "outputs", &outputs, err) != OK)
        return err_within(err, "graph");
    if (json_array_size(values) > GRAPH_VALUES_MAX || json_array_size(nodes) > GRAPH_NODES_MAX)
        return err_raise(err, ERR_LIMIT, "a graph of %zu values", json_array_size(values));
    g.n_values = (int)json_array_size(values);
    g.n_nodes = (int)json_array_size(nodes);
    g.value = arena_new(a, struct gvalue, (size_t)g.n_values);
    g.node = arena_new(a, struct gnode, (size_t)g.n_nodes);
    for (int i = 0; i < g.n_values; i++)
        if (value_read(a, json_array_get(values, (size_t)i), &g.value[i], err) != OK)
            return err_within(err, "graph: value %d", i);
    if (places_read(&g, inputs, GRAPH_FROM_INPUT, err) != OK ||
        places_read(&g, params, GRAPH_FROM_PARAM, err) != OK)
        return err_within(err, "graph");
    for (int i = 0; i < g.n_nodes; i++)
        if (node_read(&g, json_array_get(nodes, (size_t)i), i, err) != OK)
            return err_within(err, "graph: node %d", i);
    g.n_outputs = (int)json_array_size(outputs);
    g.output = arena_new(a, int, (size_t)g.n_outputs);
    for (int i = 0; i < g.n_outputs; i++) {
        int64_t id = (int64_t)json_integer_value(json_array_get(outputs, (size_t)i));
        if (id < 0 || id >= g.n_values)
            return err_raise(err, ERR_FORMAT, "output %d", i);
        g.output[i] = (int)id;
        g.value[id].uses++;
    }
    if (check_order(&g, err) != OK)
        return err_within(err, "graph");
    *ret = g;
    return OK;
}

struct str gnode_name(const struct gnode *n)
{
    struct str rest = str_from(n->op), part = rest;
    if (str_starts(rest, S("aten.")))
        rest = str_drop(rest, 5);
    return str_cut(&rest, '.', &part) ? part : rest;
}

const struct garg *gnode_kw(const struct gnode *n, const char *key)
{
    for (int i = 0; i < n->n_kw; i++)
        if (strcmp(n->key[i], key) == 0)
            return &n->kw[i];
    return NULL;
}

double garg_number(const struct garg *a, double none)
{
    if (a == NULL || a->kind == GARG_NONE)
        return none;
    return a->kind == GARG_REAL ? a->r : (double)a->i;
}

int graph_value_add(struct graph *g, const struct gvalue *like)
{
    struct gvalue *all = arena_new(g->arena, struct gvalue, (size_t)g->n_values + 1);
    memcpy(all, g->value, (size_t)g->n_values * sizeof *all);
    all[g->n_values] = *like;
    g->value = all;
    return g->n_values++;
}

int graph_node_add(struct graph *g, const struct gnode *n)
{
    struct gnode *all = arena_new(g->arena, struct gnode, (size_t)g->n_nodes + 1);
    memcpy(all, g->node, (size_t)g->n_nodes * sizeof *all);
    all[g->n_nodes] = *n;
    g->node = all;
    return g->n_nodes++;
}
