/* ATen operators become terms: the element-wise ones, products, and the way to the others. */
#include "playbook/lower_int.h"

#define UNKNOWN_MAX 300 /* characters of names in one message */

/* Argument i as a term: a tensor, or a number. */
int lower_operand(struct lowering *l, int i)
{
    const struct garg *a = i < l->n->n_in ? &l->n->in[i] : NULL;
    if (a != NULL && a->kind == GARG_VALUE)
        return l->p->of_value[a->i];
    int t = term_number(l->p, garg_number(a, 0));
    bool whole = a != NULL && (a->kind == GARG_INT || a->kind == GARG_FLAG);
    return whole ? term_retyped(l->p, t, a->kind == GARG_FLAG ? GRAPH_BOOL : GRAPH_INT) : t;
}

bool lower_given(const struct lowering *l, int i)
{
    return i < l->n->n_in && l->n->in[i].kind != GARG_NONE;
}

double lower_number(const struct lowering *l, int i, double none)
{
    return i < l->n->n_in ? garg_number(&l->n->in[i], none) : none;
}

const struct gvalue *lower_result(const struct lowering *l, int i)
{
    return &l->p->graph->value[l->n->out[i]];
}

int lower_dim(int64_t d, int rank)
{
    return (int)(d < 0 ? d + rank : d);
}

void lower_set_result(struct lowering *l, int i, int t)
{
    if (i < l->n->n_out && l->n->out[i] >= 0)
        l->p->of_value[l->n->out[i]] = t;
}

bool lower_one_of(struct str name, const char *const *list)
{
    for (; *list != NULL; list++)
        if (str_eq(name, str_from(*list)))
            return true;
    return false;
}

struct simple {
    const char *name, *form;
    int arity;
    bool costly;
};

static const struct simple simple[] = {
    { "neg", "-$a", 1, false },
    { "abs", "fabsf($a)", 1, false },
    { "relu", "($a < 0 ? 0 : $a)", 1, false },
    { "exp", "expf($a)", 1, true },
    { "exp2", "exp2f($a)", 1, true },
    { "expm1", "expm1f($a)", 1, true },
    { "log", "logf($a)", 1, true },
    { "log2", "log2f($a)", 1, true },
    { "log10", "log10f($a)", 1, true },
    { "log1p", "log1pf($a)", 1, true },
    { "sqrt", "sqrtf($a)", 1, false },
    { "rsqrt", "1.0f / sqrtf($a)", 1, false },
    { "reciprocal", "1.0f / $a", 1, false },
    { "tanh", "tanhf($a)", 1, true },
    { "sigmoid", "1.0f / (1.0f + expf(-$a))", 1, true },
    { "silu", "$a / (1.0f + expf(-$a))", 1, true },
    { "erf", "erff($a)", 1, true },
    { "sin", "sinf($a)", 1, true },
    { "cos", "cosf($a)", 1, true },
    { "tan", "tanf($a)", 1, true },
    { "atan", "atanf($a)", 1, true },
    { "asin", "asinf($a)", 1, true },
    { "acos", "acosf($a)", 1, true },
    { "sinh", "sinhf($a)", 1, true },
    { "cosh", "coshf($a)", 1, true },
    { "floor", "floorf($a)", 1, false },
    { "ceil", "ceilf($a)", 1, false },
    { "round", "rintf($a)", 1, false },
    { "trunc", "truncf($a)", 1, false },
    { "sign", "(float)(($a > 0) - ($a < 0))", 1, false },
    { "hardsigmoid", "fminf(fmaxf($a + 3.0f, 0.0f), 6.0f) / 6.0f", 1, false },
    { "hardswish", "$a * fminf(fmaxf($a + 3.0f, 0.0f), 6.0f) / 6.0f", 1, false },
    { "mul", "$a * $b", 2, false },
    { "div", "$a / $b", 2, false },
    { "maximum", "($a > $b ? $a : $b)", 2, false },
    { "minimum", "($a < $b ? $a : $b)", 2, false },
    { "atan2", "atan2f($a, $b)", 2, true },
    { "fmod", "fmodf($a, $b)", 2, true },
    { "where", "($a ? $b : $c)", 3, false },
};

static const struct simple predicates[] = {
    { "eq", "($a == $b)", 2, false },          { "ne", "($a != $b)", 2, false },
    { "lt", "($a < $b)", 2, false },           { "le", "($a <= $b)", 2, false },
    { "gt", "($a > $b)", 2, false },           { "ge", "($a >= $b)", 2, false },
    { "logical_and", "($a && $b)", 2, false }, { "logical_or", "($a || $b)", 2, false },
    { "logical_not", "!$a", 1, false },        { "bitwise_not", "!$a", 1, false },
    { "bitwise_and", "($a && $b)", 2, false }, { "bitwise_or", "($a || $b)", 2, false },
    { "isnan", "($a != $a)", 1, false },
};

static const struct simple *simple_find(const struct simple *rows, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(str_from(rows[i].name), name))
            return &rows[i];
    return NULL;
}

static int simple_term(struct lowering *l, const struct simple *s)
{
    int arg[3] = { 0 };
    for (int i = 0; i < s->arity; i++)
        arg[i] = lower_operand(l, i);
    return term_point(l->p, s->form, s->costly, s->arity, arg);
}

static int power(struct lowering *l)
{
    int a = lower_operand(l, 0);
    if (lower_given(l, 1) && l->n->in[1].kind == GARG_VALUE) {
        int arg[] = { a, lower_operand(l, 1) };
        return term_point(l->p, "powf($a, $b)", true, 2, arg);
    }
    double e = lower_number(l, 1, 1);
    static const struct {
        double exponent;
        const char *form;
    } forms[] = { { 1, "$a" },          { 2, "$a * $a" },    { 3, "$a * $a * $a" },
                  { 0.5, "sqrtf($a)" }, { -1, "1.0f / $a" }, { -0.5, "1.0f / sqrtf($a)" } };
    for (size_t i = 0; i < COUNT(forms); i++)
        if (forms[i].exponent == e)
            return term_point1(l->p, forms[i].form, false, a);
    int arg[] = { a, term_number(l->p, e) };
    return term_point(l->p, "powf($a, $b)", true, 2, arg);
}

static int add_or_sub(struct lowering *l, const char *form)
{
    int b = lower_operand(l, 1);
    double alpha = garg_number(gnode_kw(l->n, "alpha"), 1);
    if (alpha != 1)
        b = term_point2(l->p, "$a * $b", b, term_number(l->p, alpha));
    return term_point2(l->p, form, lower_operand(l, 0), b);
}

static int clamp(struct lowering *l)
{
    int t = lower_operand(l, 0);
    if (lower_given(l, 1))
        t = term_point2(l->p, "($a < $b ? $b : $a)", t, lower_operand(l, 1));
    if (lower_given(l, 2))
        t = term_point2(l->p, "($a > $b ? $b : $a)", t, lower_operand(l, 2));
    return t;
}

static int gelu(struct lowering *l)
{
    const struct garg *how = gnode_kw(l->n, "approximate");
    bool tanh_form = how != NULL && how->kind == GARG_TEXT && strcmp(how->text, "tanh") == 0;
    return term_point1(
        l->p,
        tanh_form ? "0.5f * $a * (1.0f + tanhf(0.7978845608f * ($a + 0.044715f * $a * $a * $a)))"
                  : "0.5f * $a * (1.0f + erff($a * 0.7071067812f))",
        true, lower_operand(l, 0));
}

static int leaky_relu(struct lowering *l)
{
    return term_point2(l->p, "($a > 0 ? $a : $b * $a)", lower_operand(l, 0),
                       term_number(l->p, lower_number(l, 1, 0.01)));
}

static int elu(struct lowering *l)
{
    int arg[] = { lower_operand(l, 0), term_number(l->p, lower_number(l, 1, 1)),
                  term_number(l->p, lower_number(l, 2, 1)),
                  term_number(l->p, lower_number(l, 3, 1)) };
    return term_point(l->p, "($a > 0 ? $c * $a : $c * $b * expm1f($a * $d))", true, 4, arg);
}

static int matmul(struct program *p, int a, int b, const struct gshape *shape)
{
    struct term t = { .kind = TERM_MATMUL,
                      .shape = *shape,
                      .dtype = p->term[a].dtype,
                      .arg = { a, b },
                      .n_args = 2 };
    return term_add(p, &t);
}

/* beta * bias + alpha * a @ b */
static int addmm(struct lowering *l)
{
    double alpha = garg_number(gnode_kw(l->n, "alpha"), 1),
           beta = garg_number(gnode_kw(l->n, "beta"), 1);
    int y = matmul(l->p, lower_operand(l, 1), lower_operand(l, 2), &lower_result(l, 0)->shape);
    if (alpha != 1)
        y = term_point2(l->p, "$a * $b", y, term_number(l->p, alpha));
    int bias = lower_operand(l, 0);
    if (beta != 1)
        bias = term_point2(l->p, "$a * $b", bias, term_number(l->p, beta));
    return term_point2(l->p, "$a + $b", y, bias);
}

static int convert(struct lowering *l)
{
    int x = lower_operand(l, 0);
    enum graph_dtype to = lower_result(l, 0)->dtype, from = l->p->term[x].dtype;
    bool exact = to == GRAPH_INT && from != GRAPH_INT && from != GRAPH_BOOL;
    int t = term_point1(l->p,
                        exact              ? "(long long)$a"
                        : to == GRAPH_BOOL ? "($a != 0)"
                                           : "$a",
                        false, x);
    return term_retyped(l->p, t, to == GRAPH_INT || to == GRAPH_BOOL ? to : GRAPH_F32);
}

static int composite(struct lowering *l, struct str name)
{
    static const struct {
        const char *name;
        int (*make)(struct lowering *);
    } rows[] = { { "pow", power },       { "clamp", clamp },
                 { "gelu", gelu },       { "leaky_relu", leaky_relu },
                 { "elu", elu },         { "addmm", addmm },
                 { "_to_copy", convert } };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_eq(name, str_from(rows[i].name)))
            return rows[i].make(l);
    if (str_eq(name, S("mm")) || str_eq(name, S("bmm")))
        return matmul(l->p, lower_operand(l, 0), lower_operand(l, 1), &lower_result(l, 0)->shape);
    if (str_eq(name, S("add")))
        return add_or_sub(l, "$a + $b");
    if (str_eq(name, S("sub")))
        return add_or_sub(l, "$a - $b");
    return -1;
}

static int lower_node(struct lowering *l)
{
    struct str name = gnode_name(l->n);
    const struct simple *s = simple_find(simple, COUNT(simple), name);
    bool rounded = str_eq(name, S("div")) && gnode_kw(l->n, "rounding_mode") != NULL;
    if (s != NULL && !rounded) {
        int t = simple_term(l, s);
        return str_eq(name, S("div")) ? term_retyped(l->p, t, GRAPH_F32) : t;
    }
    s = simple_find(predicates, COUNT(predicates), name);
    if (s != NULL && !(str_starts(name, S("bitwise")) && lower_result(l, 0)->dtype != GRAPH_BOOL)) {
        return term_retyped(l->p, simple_term(l, s), GRAPH_BOOL);
    }
    int t = lower_shape(l, name);
    if (t < 0)
        t = lower_reduction(l, name);
    return t >= 0 ? t : composite(l, name);
}

static enum err_code leaves(struct program *p, struct err *err)
{
    for (int i = 0; i < p->graph->n_values; i++) {
        const struct gvalue *v = &p->graph->value[i];
        p->of_value[i] = -1;
        if (v->source == GRAPH_FROM_NODE)
            continue;
        if (v->dtype == GRAPH_F64 || v->dtype == GRAPH_OTHER)
            return err_raise(err, ERR_TASK, "the playbook does not know dtype %s yet ('%s')",
                             v->dtype_name, v->name);
        struct term t = {
            .kind = TERM_LEAF, .shape = v->shape, .dtype = v->dtype, .name = v->name, .leaf = i
        };
        if (v->source == GRAPH_FROM_CONST && v->n_data != 1)
            return err_raise(err, ERR_TASK,
                             "the playbook does not know constant tensors yet ('%s')", v->name);
        if (v->source == GRAPH_FROM_CONST) {
            t.kind = TERM_NUMBER;
            t.number = v->data[0];
        }
        p->of_value[i] = term_add(p, &t);
    }
    return OK;
}

/* Name an operator that is unknown and go on with a leaf in its place, so that all are named at
 * once. */
static void stand_in(struct lowering *l, struct buf *unknown)
{
    own_arena tmp = { 0 };
    const char *name = arena_fmt(&tmp, "'%s'", l->n->op);
    if (unknown->len == 0 || strstr(unknown->ptr, name) == NULL)
        buf_addf(unknown, "%s%s", unknown->len > 0 ? ", " : "", name);
    for (int i = 0; i < l->n->n_out; i++) {
        if (l->n->out[i] < 0)
            continue;
        const struct gvalue *v = lower_result(l, i);
        struct term t = { .kind = TERM_LEAF, .shape = v->shape, .dtype = v->dtype, .leaf = -1 };
        lower_set_result(l, i, term_add(l->p, &t));
    }
}

enum err_code lower_graph(struct arena *a, struct graph *g, struct program *ret, struct err *err)
{
    struct program p = { .arena = a, .graph = g, .n_outputs = g->n_outputs };
    p.of_value = arena_new(a, int, (size_t)g->n_values);
    p.output = arena_new(a, int, (size_t)g->n_outputs);
    if (leaves(&p, err) != OK)
        return err->code;
    struct buf unknown = { .arena = a, .max = UNKNOWN_MAX };
    for (int i = 0; i < g->n_nodes; i++) {
        struct lowering l = { &p, &g->node[i], err };
        int t = lower_node(&l);
        if (t < 0) {
            stand_in(&l, &unknown);
            continue;
        }
        lower_set_result(&l, 0, t);
        if (p.term[t].name == NULL && g->node[i].out[0] >= 0)
            p.term[t].name = g->value[g->node[i].out[0]].name;
    }
    if (unknown.len > 0) {
        err_raise(err, ERR_TASK, "the playbook does not know %s yet", unknown.ptr);
        return err_hint(err, "docs/playbook.md lists what it knows; a kernel by hand "
                             "(docs/header.md) goes through `cuda-agent grade`");
    }
    for (int i = 0; i < g->n_outputs; i++) {
        p.output[i] = p.of_value[g->output[i]];
        if (p.output[i] < 0 || g->value[g->output[i]].dtype == GRAPH_F64)
            return err_raise(err, ERR_TASK, "the playbook cannot make output %d", i);
    }
    *ret = p;
    return OK;
}
