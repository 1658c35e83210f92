/* What both templates write alike. */
#include <ctype.h>
#include <stdio.h>

#include "playbook/emit.h"
#include "playbook/knobs.h"

void template_head(struct buf *b, const char *task, bool fast_math)
{
    if (fast_math)
        buf_addz(b, "// ca: fast-math\n");
    buf_addf(b,
             "/* Kernels for '%s', written by the playbook of cuda-agent %s.\n"
             " * SPDX-License-Identifier: Apache-2.0. What it writes for you is yours to use.\n"
             " */\n#include \"cuda_agent.h\"\n\n",
             task, CA_VERSION_TEXT);
}

const char *template_name(struct arena *a, const struct kernel *k, int index)
{
    char *name = (char *)(uintptr_t)arena_fmt(a, "%s_%d", k->name, index);
    for (char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return isalpha((unsigned char)name[0]) ? name : arena_fmt(a, "k%s", name);
}

void template_describe(struct buf *b, const struct plan *plan, const struct kernel *k)
{
    const struct gshape *s = &plan->p->term[k->sink].shape;
    buf_addf(b, "/* %s: (", k->name);
    for (int d = 0; d < s->rank; d++)
        buf_addf(b, "%s%lld", d ? ", " : "", (long long)s->dim[d]);
    if (k->kind == KERNEL_ROWS)
        buf_addf(b, ") as %lld rows of %lld%s", (long long)k->rows, (long long)k->cols,
                 k->row_only ? ", one result a row" : "");
    else if (k->kind == KERNEL_COLUMNS)
        buf_addf(b, "), the middle of %lld x %lld x %lld reduced", (long long)k->outer,
                 (long long)k->red, (long long)k->inner);
    else
        buf_addz(b, "), a matrix product by the library");
    buf_addz(b, " */\n");
}

const char *template_pointer(struct arena *a, const struct plan *plan, int leaf, const char *c_type)
{
    if (leaf < 0)
        return template_out_pointer(a, plan, -1 - leaf, arena_fmt(a, "const %s", c_type));
    const struct gvalue *v = &plan->p->graph->value[leaf];
    return arena_fmt(a, "(const %s *)c->%s.v[%d].data", c_type,
                     v->source == GRAPH_FROM_INPUT ? "in" : "param", v->place);
}

const char *template_out_pointer(struct arena *a, const struct plan *plan, int buffer,
                                 const char *c_type)
{
    const struct buffer *b = &plan->buffer[buffer];
    if (b->home == BUFFER_OUT)
        return arena_fmt(a, "(%s *)c->out.v[%d].data", c_type, b->out);
    return arena_fmt(a, "(%s *)((char *)c->%s + %lld)", c_type,
                     b->home == BUFFER_KEEP ? "keep" : "scratch", (long long)b->offset);
}

void template_tail(struct buf *b, const struct plan *plan, const char *prefix)
{
    if (plan->scratch_bytes > 0)
        buf_addf(b,
                 "%ssize_t ca_scratch(const struct ca_call *c)\n{\n    (void)c;\n    return "
                 "%lld;\n}\n\n",
                 prefix, (long long)plan->scratch_bytes);
    if (plan->keep_bytes > 0)
        buf_addf(
            b,
            "%ssize_t ca_keep(const struct ca_call *c)\n{\n    (void)c;\n    return %lld;\n}\n\n",
            prefix, (long long)plan->keep_bytes);
}

static bool headless(struct str line)
{
    bool branch =
        str_starts(line, S("for (")) || str_starts(line, S("if (")) || str_eq(line, S("else"));
    return branch && line.len > 0 && line.ptr[line.len - 1] != '{' &&
           line.ptr[line.len - 1] != ';' && line.ptr[line.len - 1] != '}';
}

enum err_code template_done(struct arena *a, struct buf *b, struct str *ret, struct err *err)
{
    struct str text, line;
    struct buf out = { .arena = a, .max = 2 * TEMPLATE_MAX };
    int depth = 0, extra = 0;
    bool verbatim = false; /* in a directive that goes on, or in a comment */
    if (buf_done(b, &text, err) != OK)
        return err->code;
    while (str_cut(&text, '\n', &line)) {
        bool directive = verbatim || str_starts(line, S("#")) || str_starts(line, S(" *"));
        verbatim = directive && line.len > 0 && line.ptr[line.len - 1] == '\\';
        if (directive || line.len == 0) {
            buf_addf(&out, "%.*s\n", STR_FMT(line));
            continue;
        }
        while (line.len > 0 && line.ptr[0] == ' ')
            line = str_drop(line, 1);
        int close = line.len > 0 && line.ptr[0] == '}';
        buf_addf(&out, "%*s%.*s\n", 4 * (depth - close + extra), "", STR_FMT(line));
        for (size_t i = 0; i < line.len; i++)
            depth += line.ptr[i] == '{' ? 1 : line.ptr[i] == '}' ? -1 : 0;
        extra = headless(line) ? extra + 1 : 0;
    }
    return buf_done(&out, ret, err);
}

void template_gemm(const struct plan *plan, const struct kernel *k, struct gemm *ret)
{
    const struct term *t = &plan->p->term[k->sink];
    struct gemm g = { .batch = 1 };
    int rank = t->shape.rank;
    g.m = t->shape.dim[rank - 2];
    g.n = t->shape.dim[rank - 1];
    if (rank == 3)
        g.batch = t->shape.dim[0];
    g.k = plan->p->term[t->arg[0]].shape.dim[rank - 1];
    for (int i = 0; i < 2; i++) {
        int64_t s[GRAPH_RANK_MAX];
        int leaf = -1;
        if (!plan_strides(plan, t->arg[i], &leaf, s))
            continue; /* plan.c made it memory */
        g.leaf[i] = plan->p->term[leaf].leaf;
        g.trans[i] = s[rank - 1] != 1;
        g.ld[i] = g.trans[i] ? s[rank - 1] : s[rank - 2];
        g.step[i] = rank == 3 ? s[0] : 0;
        int64_t least = g.trans[i] ? (i == 0 ? g.m : g.k) : (i == 0 ? g.k : g.n);
        if (g.ld[i] < least)
            g.ld[i] = least; /* a single row: its stride says nothing */
    }
    *ret = g;
}
