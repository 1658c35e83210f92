#include "core/field.h"

#include <assert.h>
#include <stdlib.h>

static bool name_eq(const char *name, struct str s)
{
    if (strlen(name) != s.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i] == '-' ? '_' : s.ptr[i];
        char d = name[i] == '-' ? '_' : name[i];
        if (c != d)
            return false;
    }
    return true;
}

const struct field *field_find(const struct field *fields, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (name_eq(fields[i].name, name))
            return &fields[i];
    return NULL;
}

static enum err_code set_flag(const struct field *f, struct str v, struct err *err)
{
    bool yes = str_eq(v, S("true")) || str_eq(v, S("yes")) || str_eq(v, S("1"));
    bool no = str_eq(v, S("false")) || str_eq(v, S("no")) || str_eq(v, S("0"));
    if (!yes && !no)
        return err_raise(err, ERR_USAGE, "'%.*s' is not true or false", STR_FMT(v));
    *f->to.flag = yes;
    return OK;
}

static enum err_code set_choice(const struct field *f, struct str v, struct err *err)
{
    own_arena tmp = { 0 };
    struct buf all = { .arena = &tmp, .max = 512 };
    for (int i = 0; f->choices[i] != NULL; i++) {
        if (str_eq(str_from(f->choices[i]), v)) {
            *f->to.choice = i;
            return OK;
        }
        buf_addf(&all, "%s%s", i ? ", " : "", f->choices[i]);
    }
    return err_raise(err, ERR_USAGE, "'%.*s' is none of: %s", STR_FMT(v), all.ptr);
}

static enum err_code set_value(const struct field *f, struct str v, struct err *err)
{
    switch (f->kind) {
    case FIELD_IS_FLAG:
        return set_flag(f, v, err);
    case FIELD_IS_INT:
        return str_int(v, (int64_t)f->min, (int64_t)f->max, f->to.integer, err);
    case FIELD_IS_REAL:
        return str_real(v, f->min, f->max, f->to.real, err);
    case FIELD_IS_TEXT:
        *f->to.text = v;
        return OK;
    case FIELD_IS_CHOICE:
        return set_choice(f, v, err);
    }
    return OK;
}

enum err_code field_set(const struct field *f, struct str value, struct err *err)
{
    if (set_value(f, value, err) != OK)
        return err_within(err, "%s", f->name);
    return OK;
}

#define FIELDS_MAX 128

/* The rows of one call of args_options, and which of them the line has named already. */
struct option_rows {
    const struct field *field;
    size_t n;
    bool seen[FIELDS_MAX];
};

static enum err_code once(struct option_rows *rows, const struct field *f, struct str name,
                          struct err *err)
{
    bool *seen = &rows->seen[f - rows->field];
    if (*seen)
        return err_raise(err, ERR_USAGE, "--%.*s is given twice", STR_FMT(name));
    *seen = true;
    return OK;
}

/* One option at args->v[*at]; steps *at past what it used. */
static enum err_code option_take(struct args *args, int *at, struct option_rows *rows,
                                 struct err *err)
{
    struct str rest = str_drop(str_from(args->v[*at]), 2), name = { 0 };
    bool inline_value = memchr(rest.ptr, '=', rest.len) != NULL;
    if (!str_cut(&rest, '=', &name))
        return err_raise(err, ERR_USAGE, "'--%s' is no option", rest.ptr);
    const struct field *f = field_find(rows->field, rows->n, name);
    if (f == NULL && str_starts(name, S("no-"))) {
        f = field_find(rows->field, rows->n, str_drop(name, 3));
        if (f != NULL && f->kind == FIELD_IS_FLAG && !inline_value) {
            *f->to.flag = false;
            return once(rows, f, name, err);
        }
        f = NULL;
    }
    if (f == NULL) {
        err_raise(err, ERR_USAGE, "unknown option '--%.*s'", STR_FMT(name));
        return err_hint(err, "--help lists the options");
    }
    if (once(rows, f, name, err) != OK)
        return err->code;
    if (inline_value)
        return field_set(f, rest, err);
    if (f->kind == FIELD_IS_FLAG) {
        *f->to.flag = true;
        return OK;
    }
    if (*at + 1 >= args->n)
        return err_raise(err, ERR_USAGE, "--%.*s wants a value: %s", STR_FMT(name), f->help);
    *at += 1;
    return field_set(f, str_from(args->v[*at]), err);
}

enum err_code args_options(struct args *args, const struct field *fields, size_t n, struct err *err)
{
    struct option_rows rows = { fields, n, { false } };
    assert(n <= FIELDS_MAX);
    int kept = 0;
    bool ended = false;
    for (int i = 0; i < args->n; i++) {
        struct str a = str_from(args->v[i]);
        if (!ended && str_eq(a, S("--"))) {
            ended = true;
        } else if (!ended && str_starts(a, S("--"))) {
            if (option_take(args, &i, &rows, err) != OK)
                return err->code;
        } else {
            args->v[kept++] = args->v[i];
        }
    }
    args->n = kept;
    return OK;
}
