#include "playbook/emit.h"

#include <math.h>
#include <stdio.h>

#define TEXT_MAX ((size_t)1 << 20)
#define MEMO_MAX 4096

struct emit_memo {
    int term;
    const char *key, *name;
    bool inner;
};

struct index {
    const struct affine *d[GRAPH_RANK_MAX];
};

static const char *value_at(struct emit *e, int t, const struct index *at);

/* ---- indices ---- */

static struct index spread(struct emit *e, const struct affine *x, const struct gshape *s)
{
    struct index at = { { NULL } };
    for (int d = s->rank - 1; d >= 0; d--) {
        at.d[d] = d == 0 ? x : affine_mod(e->arena, x, s->dim[d] > 0 ? s->dim[d] : 1);
        x = affine_div(e->arena, x, s->dim[d] > 0 ? s->dim[d] : 1);
    }
    return at;
}

static const struct affine *flat(struct emit *e, const struct index *at, const struct gshape *s,
                                 unsigned skip)
{
    const struct affine *x = affine_number(e->arena, 0);
    int64_t step = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        if (skip & 1u << d)
            continue;
        if (s->dim[d] > 1)
            x = affine_add(e->arena, x, affine_scale(e->arena, at->d[d], step));
        step *= s->dim[d];
    }
    return x;
}

static bool inner_index(const struct emit *e, const struct affine *x)
{
    return affine_uses(x, e->col) || (e->lane != NULL && affine_uses(x, e->lane)) ||
           (e->kernel->kind == KERNEL_COLUMNS && affine_uses(x, "r"));
}

/* ---- names and memory ---- */

const char *emit_c_type(bool cuda, const char *dtype_name)
{
    static const struct {
        const char *name, *cuda, *cpu;
    } types[] = { { "f32", "float", "float" },
                  { "f16", "__half", "uint16_t" },
                  { "bf16", "__nv_bfloat16", "uint16_t" },
                  { "i8", "int8_t", "int8_t" },
                  { "u8", "uint8_t", "uint8_t" },
                  { "i16", "int16_t", "int16_t" },
                  { "i32", "int32_t", "int32_t" },
                  { "i64", "int64_t", "int64_t" },
                  { "bool", "uint8_t", "uint8_t" } };
    for (size_t i = 0; i < COUNT(types); i++)
        if (strcmp(types[i].name, dtype_name) == 0)
            return cuda ? types[i].cuda : types[i].cpu;
    return "float";
}

static int type_bytes(const char *dtype_name)
{
    return strcmp(dtype_name, "i64") == 0                                     ? 8
           : strcmp(dtype_name, "f32") == 0 || strcmp(dtype_name, "i32") == 0 ? 4
           : strstr(dtype_name, "16") != NULL                                 ? 2
                                                                              : 1;
}

/* A C identifier from a traced name, without clashes with ours. */
static const char *identifier(struct arena *a, const char *name, int n)
{
    char *id = (char *)(uintptr_t)arena_fmt(a, "%s", name ? name : "t");
    for (char *c = id; *c != '\0'; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '_';
    bool plain = (id[0] >= 'a' && id[0] <= 'z') || (id[0] >= 'A' && id[0] <= 'Z');
    return arena_fmt(a, "%s%s_%d", plain ? "" : "t", id, n);
}

static int arg_of(struct emit *e, int leaf, const struct term *t)
{
    for (int i = 0; i < e->n_args; i++)
        if (e->arg[i].leaf == leaf)
            return i;
    if (e->n_args == EMIT_ARGS_MAX) {
        e->failed = true;
        return 0;
    }
    const char *dtype = leaf >= 0 ? e->plan->p->graph->value[leaf].dtype_name
                                  : e->plan->buffer[-1 - leaf].dtype_name;
    struct emit_arg *a = &e->arg[e->n_args];
    *a = (struct emit_arg){ leaf,
                            identifier(e->arena, t->name, e->n_args),
                            emit_c_type(e->cuda, dtype),
                            t->dtype,
                            dtype,
                            type_bytes(dtype) };
    return e->n_args++;
}

static const char *new_name(struct emit *e, const char *head)
{
    return arena_fmt(e->arena, "%s%d", head, e->n_names++);
}

static const char *c_value_type(enum graph_dtype d)
{
    return d == GRAPH_INT ? "long long" : d == GRAPH_BOOL ? "bool" : "float";
}

static const char *loaded(struct emit *e, const struct emit_arg *a, const char *element)
{
    if (strcmp(a->dtype_name, "bf16") == 0)
        return arena_fmt(e->arena, e->cuda ? "__bfloat162float(%s)" : "bf16_float(%s)", element);
    if (strcmp(a->dtype_name, "f16") == 0)
        return arena_fmt(e->arena, e->cuda ? "__half2float(%s)" : "f16_float(%s)", element);
    return element;
}

const char *emit_store(struct emit *e, enum graph_dtype d, const char *value)
{
    if (d == GRAPH_BF16)
        return arena_fmt(e->arena, e->cuda ? "__float2bfloat16(%s)" : "float_bf16(%s)", value);
    if (d == GRAPH_F16)
        return arena_fmt(e->arena, e->cuda ? "__float2half(%s)" : "float_f16(%s)", value);
    return value;
}

static const char *memo_find(struct emit *e, int t, const char *key)
{
    for (int i = 0; i < e->n_memo; i++)
        if (e->memo[i].term == t && strcmp(e->memo[i].key, key) == 0)
            return e->memo[i].name;
    return NULL;
}

static const char *index_key(struct emit *e, const struct index *at, int rank)
{
    struct buf b = { .arena = e->arena, .max = TEXT_MAX };
    for (int d = 0; d < rank; d++)
        buf_addf(&b, "%s|", affine_text(e->arena, at->d[d]));
    return b.ptr ? b.ptr : "";
}

static const char *remember(struct emit *e, int t, const char *key, const char *name, bool inner)
{
    if (e->n_memo < MEMO_MAX)
        e->memo[e->n_memo++] = (struct emit_memo){ t, key, name, inner };
    else
        e->failed = true;
    return name;
}

/* ---- the kinds of terms ---- */

static const char *leaf_value(struct emit *e, int id, const struct index *at, bool *inner)
{
    const struct term *t = &e->plan->p->term[id];
    const struct affine *offset = affine_number(e->arena, 0);
    int64_t step[GRAPH_RANK_MAX];
    int leaf;
    plan_strides(e->plan, id, &leaf, step);
    for (int d = 0; d < t->shape.rank; d++)
        if (t->shape.dim[d] > 1)
            offset = affine_add(e->arena, offset, affine_scale(e->arena, at->d[d], step[d]));
    int a = arg_of(e, t->leaf, t);
    *inner = inner_index(e, offset);
    if (e->kernel->kind == KERNEL_COLUMNS && affine_uses(offset, "r") &&
        affine_uses(offset, e->col)) {
        e->along_red += affine_coefficient(offset, "r") == 1;
        e->along_col += affine_coefficient(offset, e->col) == 1;
    }
    bool packs = e->vec > 1 && *inner && affine_coefficient(offset, e->lane) == 1 &&
                 affine_coefficient(offset, e->col) == 1 &&
                 affine_multiple(offset, e->vec, e->col, e->lane) && e->n_packs < EMIT_ARGS_MAX &&
                 strstr(affine_text(e->arena, offset), "ai") == NULL;
    if (!packs)
        return loaded(e, &e->arg[a],
                      arena_fmt(e->arena, "%s[%s]", e->arg[a].name, affine_text(e->arena, offset)));
    const struct affine *lane = affine_var(e->arena, e->lane, e->vec - 1);
    const char *base =
        affine_text(e->arena, affine_add(e->arena, offset, affine_scale(e->arena, lane, -1)));
    int p = 0;
    while (p < e->n_packs && (e->pack[p].arg != a || strcmp(e->pack[p].offset, base) != 0))
        p++;
    if (p == e->n_packs)
        e->pack[e->n_packs++] = (struct emit_pack){ a, base, new_name(e, "p") };
    return loaded(e, &e->arg[a],
                  arena_fmt(e->arena, "%s%s", e->pack[p].name, e->cache_at ? "[i].v[k]" : ".v[k]"));
}

static const char *number_text(struct emit *e, const struct term *t)
{
    if (t->dtype == GRAPH_INT || t->dtype == GRAPH_BOOL)
        return arena_fmt(e->arena, "%lld", (long long)t->number);
    if (isinf(t->number))
        return t->number > 0 ? "INFINITY" : "-INFINITY";
    if (isnan(t->number))
        return "NAN";
    const char *text = arena_fmt(e->arena, "%.9g", (double)(float)t->number);
    bool whole = strpbrk(text, ".en") == NULL;
    return arena_fmt(e->arena, t->number < 0 ? "(%s%sf)" : "%s%sf", text, whole ? ".0" : "");
}

/* $a..$d in a form become the arguments' names. */
static const char *formed(struct emit *e, const char *form, const char *const *arg)
{
    struct buf b = { .arena = e->arena, .max = TEXT_MAX };
    for (const char *c = form; *c != '\0'; c++) {
        if (*c == '$' && c[1] >= 'a' && c[1] <= 'd')
            buf_addz(&b, arg[*++c - 'a']);
        else
            buf_add(&b, (struct str){ c, 1 });
    }
    return b.ptr;
}

static int cache_index(const struct emit *e, int t)
{
    for (int i = 0; i < e->n_cached; i++)
        if (e->cached[i] == t)
            return i;
    return -1;
}

static const char *point_value(struct emit *e, int id, const struct index *at, const char *key,
                               bool inner)
{
    struct term t = e->plan->p->term[id];
    const char *arg[TERM_ARGS_MAX];
    int cache = inner && e->cache_at != NULL ? cache_index(e, id) : -1;
    if (cache >= 0 && e->filled[cache])
        return remember(e, id, key, arena_fmt(e->arena, "e%d%s", cache, e->cache_at), true);
    for (int i = 0; i < t.n_args; i++)
        arg[i] = value_at(e, t.arg[i], at);
    const char *name = new_name(e, "t");
    struct buf *to = inner ? &e->body : &e->outer;
    buf_addf(to, "const %s %s = %s;\n", c_value_type(t.dtype), name, formed(e, t.form, arg));
    if (cache >= 0) {
        buf_addf(to, "e%d%s = %s;\n", cache, e->cache_at, name);
        e->inside[cache] = true;
    }
    return name;
}

static const char *cat_value(struct emit *e, const struct term *t, const struct index *at,
                             bool inner)
{
    struct buf *to = inner ? &e->body : &e->outer;
    const char *where = affine_text(e->arena, at->d[t->dim]), *all = NULL;
    int64_t start = gshape_count(&t->shape) ? t->shape.dim[t->dim] : 0;
    for (int i = t->n_args - 1; i >= 0; i--) {
        int64_t size = e->plan->p->term[t->arg[i]].shape.dim[t->dim];
        start -= size;
        /* Every part is read at a place that exists; which one counts is chosen afterwards. */
        const char *inside = new_name(e, inner ? "ai" : "at");
        buf_addf(to, "const long long %s = %s < %lld ? 0 : %s < %lld ? %s - %lld : %lld;\n", inside,
                 where, (long long)start, where, (long long)(start + size), where, (long long)start,
                 (long long)(size - 1));
        struct index part = *at;
        /* The name carries the column's dependence for later terms. */
        part.d[t->dim] =
            affine_var(e->arena, inner ? arena_fmt(e->arena, "%s", inside) : inside, size - 1);
        const char *v = value_at(e, t->arg[i], &part);
        all = all == NULL ? v
                          : arena_fmt(e->arena, "(%s < %lld ? %s : %s)", where,
                                      (long long)(start + size), v, all);
    }
    const char *name = new_name(e, "t");
    buf_addf(to, "const %s %s = %s;\n", c_value_type(t->dtype), name, all ? all : "0");
    return name;
}

static const char *gather_value(struct emit *e, const struct term *t, const struct index *at,
                                bool inner)
{
    const struct gshape *source = &e->plan->p->term[t->arg[0]].shape;
    const struct gshape *index = &e->plan->p->term[t->arg[1]].shape;
    struct index place = *at, from = { { NULL } };
    if (t->gather == GATHER_SELECT)
        place.d[0] = at->d[t->dim];
    const char *found = value_at(e, t->arg[1], &place);
    const char *name = new_name(e, inner ? "ai" : "at");
    buf_addf(inner ? &e->body : &e->outer, "const long long %s = %s;\n", name, found);
    for (int d = 0; d < source->rank; d++)
        from.d[d] =
            t->gather == GATHER_ROWS
                ? at->d[index->rank + d - 1 < t->shape.rank && d > 0 ? index->rank + d - 1 : 0]
                : at->d[d];
    from.d[t->dim] = affine_var(e->arena, name, source->dim[t->dim] - 1);
    return value_at(e, t->arg[0], &from);
}

static const char *reduce_value(struct emit *e, int id, const struct index *at)
{
    const struct term *t = &e->plan->p->term[id];
    const struct gshape *s = &e->plan->p->term[t->arg[0]].shape;
    struct index rows = *at;
    const struct affine *x = flat(e, &rows, s, t->mask);
    int64_t count = gshape_count(&t->shape);
    if (e->kernel->kind != KERNEL_ROWS || count != e->kernel->rows || !affine_equal(x, e->at_row)) {
        e->failed = true;
        return "0";
    }
    for (int i = 0; i < e->n_stages; i++)
        if (e->stage_term[i] == id)
            return arena_fmt(e->arena, "s%d", i);
    e->failed = true;
    return "0";
}

static bool depends_on_column(const struct emit *e, const struct index *at, int rank)
{
    for (int d = 0; d < rank; d++)
        if (at->d[d] != NULL && inner_index(e, at->d[d]))
            return true;
    return false;
}

/* Names that cat and gather make inside the inner loop ("ai") count as the column, too. */
static bool inner_at(struct emit *e, const struct index *at, int rank)
{
    if (depends_on_column(e, at, rank))
        return true;
    for (int d = 0; d < rank; d++)
        if (at->d[d] != NULL && strstr(affine_text(e->arena, at->d[d]), "ai") != NULL)
            return true;
    return false;
}

static struct index through(struct emit *e, const struct term *t, const struct index *at)
{
    const struct gshape *s = &e->plan->p->term[t->arg[0]].shape;
    struct index to = { { NULL } };
    if (t->kind == TERM_RESHAPE)
        return spread(e, flat(e, at, &t->shape, 0), s);
    for (int d = 0; d < s->rank; d++) {
        if (t->kind == TERM_EXPAND)
            to.d[d] =
                s->dim[d] == 1 ? affine_number(e->arena, 0) : at->d[t->shape.rank - s->rank + d];
        else if (t->kind == TERM_SLICE)
            to.d[d] = d == t->dim
                          ? affine_add(e->arena, affine_scale(e->arena, at->d[d], t->stride),
                                       affine_number(e->arena, t->start))
                          : at->d[d];
    }
    if (t->kind == TERM_PERMUTE)
        for (int d = 0; d < s->rank; d++)
            to.d[t->perm[d]] = at->d[d];
    return to;
}

static const char *value_at(struct emit *e, int id, const struct index *at)
{
    struct term t = e->plan->p->term[id];
    if (e->failed)
        return "0";
    switch (t.kind) {
    case TERM_NUMBER:
        return number_text(e, &t);
    case TERM_EXPAND:
    case TERM_RESHAPE:
    case TERM_PERMUTE:
    case TERM_SLICE: {
        struct index inner = through(e, &t, at);
        return value_at(e, t.arg[0], &inner);
    }
    case TERM_REDUCE:
        return reduce_value(e, id, at);
    case TERM_MATMUL:
        e->failed = true;
        return "0";
    case TERM_LEAF:
    case TERM_IOTA:
    case TERM_POINT:
    case TERM_CAT:
    case TERM_GATHER:
        break;
    }
    const char *key = index_key(e, at, t.shape.rank), *name = memo_find(e, id, key);
    if (name != NULL)
        return name;
    bool inner = inner_at(e, at, t.shape.rank);
    if (t.kind == TERM_IOTA)
        return arena_fmt(e->arena,
                         t.dtype == GRAPH_INT ? "(%lldLL + (%s) * %lldLL)"
                                              : "(%lld.0f + (%s) * %lld.0f)",
                         (long long)t.number, affine_text(e->arena, at->d[0]), (long long)t.step);
    if (t.kind == TERM_LEAF) {
        bool by_offset = false;
        const char *element = leaf_value(e, id, at, &by_offset);
        name = new_name(e, "t");
        buf_addf(inner ? &e->body : &e->outer, "const %s %s = %s;\n", c_value_type(t.dtype), name,
                 element);
    } else if (t.kind == TERM_POINT) {
        name = point_value(e, id, at, key, inner);
    } else {
        name = t.kind == TERM_CAT ? cat_value(e, &t, at, inner) : gather_value(e, &t, at, inner);
    }
    return remember(e, id, key, name, inner);
}

/* ---- a kernel ---- */

static void find_stages(struct emit *e, int t, int depth)
{
    const struct term *x = &e->plan->p->term[t];
    if (x->kind == TERM_LEAF || depth > 256)
        return;
    for (int i = 0; i < x->n_args; i++)
        find_stages(e, x->arg[i], depth + 1);
    if (x->kind != TERM_REDUCE)
        return;
    for (int i = 0; i < e->n_stages; i++)
        if (e->stage_term[i] == t)
            return;
    if (e->n_stages == EMIT_STAGES_MAX)
        e->failed = true;
    else
        e->stage_term[e->n_stages++] = t;
}

static void mark(struct emit *e, int t, unsigned stage, unsigned *seen, int depth)
{
    const struct term *x = &e->plan->p->term[t];
    if (x->kind == TERM_LEAF || x->kind == TERM_REDUCE || depth > 256 || (seen[t] & stage))
        return;
    seen[t] |= stage;
    for (int i = 0; i < x->n_args; i++)
        mark(e, x->arg[i], stage, seen, depth + 1);
}

/* Costly terms that more than one stage needs are kept from the first one. */
static void find_cached(struct emit *e)
{
    unsigned *seen = arena_new(e->arena, unsigned, (size_t)e->plan->p->n);
    for (int s = 0; s < e->n_stages; s++)
        mark(e, e->plan->p->term[e->stage_term[s]].arg[0], 1u << s, seen, 0);
    if (e->plan->p->term[e->kernel->sink].kind != TERM_REDUCE)
        mark(e, e->kernel->sink, 1u << e->n_stages, seen, 0);
    for (int t = 0; t < e->plan->p->n; t++) {
        const struct term *x = &e->plan->p->term[t];
        bool again = seen[t] & (seen[t] - 1);
        if (again && x->kind == TERM_POINT && x->costly && e->n_cached < EMIT_CACHED_MAX &&
            gshape_count(&x->shape) == e->kernel->rows * e->kernel->cols)
            e->cached[e->n_cached++] = t;
    }
}

void emit_init(struct emit *e, struct arena *a, const struct plan *plan, const struct kernel *k,
               bool cuda, int vec)
{
    *e = (struct emit){ .arena = a,
                        .plan = plan,
                        .kernel = k,
                        .cuda = cuda,
                        .vec = vec,
                        .row = "row",
                        .col = "c",
                        .lane = vec > 1 ? "k" : NULL };
    e->outer = (struct buf){ .arena = a, .max = TEXT_MAX };
    e->body = (struct buf){ .arena = a, .max = TEXT_MAX };
    e->memo = arena_new(a, struct emit_memo, MEMO_MAX);
    if (k->kind == KERNEL_COLUMNS) {
        int64_t step = k->red * k->inner;
        e->row = "o";
        e->at_row = affine_scale(a, affine_var(a, "o", k->outer - 1), step);
        e->at_col = affine_add(a, affine_scale(a, affine_var(a, "r", k->red - 1), k->inner),
                               affine_var(a, "c", k->inner - 1));
        return;
    }
    e->at_row = affine_var(a, "row", k->rows - 1);
    e->at_col = vec > 1
                    ? affine_add(a, affine_var(a, "c", k->cols - vec), affine_var(a, "k", vec - 1))
                    : affine_var(a, "c", k->cols - 1);
    find_stages(e, k->sink, 0);
    for (int i = 0; i < k->n_more; i++)
        find_stages(e, k->more_sink[i], 0);
    find_cached(e);
}

static const struct affine *position(struct emit *e)
{
    if (e->kernel->kind == KERNEL_COLUMNS)
        return affine_add(e->arena, e->at_row, e->at_col);
    return affine_add(e->arena, affine_scale(e->arena, e->at_row, e->kernel->cols), e->at_col);
}

const char *emit_stage(struct emit *e, int s)
{
    int t = e->kernel->kind == KERNEL_COLUMNS ? e->kernel->sink : e->stage_term[s];
    int operand = e->plan->p->term[t].arg[0];
    struct index at = spread(e, position(e), &e->plan->p->term[operand].shape);
    if (gshape_count(&e->plan->p->term[operand].shape) != e->kernel->rows * e->kernel->cols &&
        e->kernel->kind == KERNEL_ROWS)
        e->failed = true;
    return value_at(e, operand, &at);
}

const char *emit_sink(struct emit *e, int which)
{
    int sink = which == 0 ? e->kernel->sink : e->kernel->more_sink[which - 1];
    const struct term *t = &e->plan->p->term[sink];
    const struct affine *x = e->kernel->row_only ? e->at_row : position(e);
    struct index at = spread(e, x, &t->shape);
    return value_at(e, sink, &at);
}

void emit_stage_done(struct emit *e)
{
    int kept = 0;
    for (int i = 0; i < e->n_memo; i++)
        if (!e->memo[i].inner)
            e->memo[kept++] = e->memo[i];
    e->n_memo = kept;
    for (int i = 0; i < e->n_cached; i++)
        e->filled[i] = e->filled[i] || e->inside[i];
    e->body.len = 0;
}

const struct affine *emit_out_offset(struct emit *e)
{
    return e->kernel->row_only ? e->at_row : position(e);
}

const char *emit_reduce_init(enum reduce_kind r)
{
    return r == REDUCE_SUM ? "0.0f" : r == REDUCE_MAX ? "-INFINITY" : "INFINITY";
}

bool emit_possible(const struct plan *plan, const struct kernel *k)
{
    own_arena a = { 0 };
    struct emit e;
    emit_init(&e, &a, plan, k, false, 1);
    if (k->kind == KERNEL_COLUMNS) {
        emit_stage(&e, 0);
        return !e.failed;
    }
    for (int s = 0; s < e.n_stages; s++) {
        emit_stage(&e, s);
        emit_stage_done(&e);
    }
    for (int i = 0; i <= k->n_more; i++)
        emit_sink(&e, i);
    return !e.failed;
}
