#include "task/task.h"

#include <inttypes.h>
#include <math.h>

#include "core/json.h"
#include "cuda_agent.h"

#define NAME_BYTES_MAX 127             /* what struct ca_plan_value can hold */
#define STORAGE_MAX ((int64_t)1 << 44) /* 16 TiB: more than any device has */

static const struct {
    const char *name;
    int bytes;
} dtypes[] = {
    [CA_F32] = { "f32", 4 },   [CA_F64] = { "f64", 8 },    [CA_F16] = { "f16", 2 },
    [CA_BF16] = { "bf16", 2 }, [CA_E4M3] = { "e4m3", 1 },  [CA_E5M2] = { "e5m2", 1 },
    [CA_I8] = { "i8", 1 },     [CA_U8] = { "u8", 1 },      [CA_I16] = { "i16", 2 },
    [CA_I32] = { "i32", 4 },   [CA_I64] = { "i64", 8 },    [CA_BOOL] = { "bool", 1 },
    [CA_C64] = { "c64", 8 },   [CA_C128] = { "c128", 16 },
};

static const char *const kinds[] = {
    [CA_NONE] = "none", [CA_TENSOR] = "tensor", [CA_INT] = "int",
    [CA_REAL] = "real", [CA_FLAG] = "flag",     [CA_TEXT] = "text",
};

static enum err_code name_take(struct arena *a, const json_t *j, const char *key, const char **ret,
                               struct err *err)
{
    struct str s;
    if (json_get_text(j, key, &s, err) != OK)
        return err->code;
    if (s.len > NAME_BYTES_MAX)
        return err_raise(err, ERR_LIMIT, "'%s' has more than %d bytes", key, NAME_BYTES_MAX);
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < ' ')
            return err_raise(err, ERR_FORMAT, "'%s' holds a control character", key);
    *ret = str_z(a, s);
    return OK;
}

static enum err_code kind_take(const json_t *j, int *ret, struct err *err)
{
    struct str s;
    if (json_get_text(j, "kind", &s, err) != OK)
        return err->code;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (str_eq(s, str_from(kinds[i]))) {
            *ret = (int)i;
            return OK;
        }
    return err_raise(err, ERR_FORMAT, "kind '%.*s' is not known", STR_FMT(s));
}

static enum err_code dtype_take(const json_t *j, int *ret, struct err *err)
{
    struct str s;
    if (json_get_text(j, "dtype", &s, err) != OK)
        return err->code;
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (str_eq(s, str_from(dtypes[i].name))) {
            *ret = (int)i;
            return OK;
        }
    return err_raise(err, ERR_FORMAT, "dtype '%.*s' is not known", STR_FMT(s));
}

/* Whole numbers in [0, STORAGE_MAX]; *rank says how many there must be, -1: any up to 8. */
static enum err_code numbers_take(const json_t *j, const char *key, int *rank, int64_t ret[8],
                                  struct err *err)
{
    json_t *list;
    if (json_get_list(j, key, &list, err) != OK)
        return err->code;
    size_t n = json_array_size(list);
    if (n > CA_RANK_MAX)
        return err_raise(err, ERR_LIMIT, "'%s' has %zu entries, limit %d", key, n, CA_RANK_MAX);
    if (*rank >= 0 && n != (size_t)*rank)
        return err_raise(err, ERR_FORMAT, "'%s' has %zu entries, shape has %d", key, n, *rank);
    for (size_t i = 0; i < n; i++) {
        const json_t *e = json_array_get(list, i);
        int64_t v = json_is_integer(e) ? (int64_t)json_integer_value(e) : -1;
        if (v < 0 || v > STORAGE_MAX)
            return err_raise(err, ERR_FORMAT, "'%s' entry %zu is no size", key, i);
        ret[i] = v;
    }
    *rank = (int)n;
    return OK;
}

/* Bytes from the first to the last element; both the span and the count are bounded. */
static enum err_code span_of(const struct value_sig *v, int64_t *ret, struct err *err)
{
    int64_t count = 1, last = 0, step = 0;
    for (int d = 0; d < v->rank; d++)
        if (v->shape[d] == 0) {
            *ret = 0;
            return OK;
        }
    for (int d = 0; d < v->rank; d++)
        if (__builtin_mul_overflow(count, v->shape[d], &count) || count > STORAGE_MAX ||
            __builtin_mul_overflow(v->shape[d] - 1, v->stride[d], &step) ||
            __builtin_add_overflow(last, step, &last) || last > STORAGE_MAX)
            return err_raise(err, ERR_LIMIT, "more than %" PRId64 " elements", STORAGE_MAX);
    *ret = (last + 1) * dtypes[v->dtype].bytes;
    return OK;
}

static enum err_code tensor_take(const json_t *j, size_t index, struct value_sig *v,
                                 struct err *err)
{
    int64_t alias, span;
    v->rank = -1;
    if (dtype_take(j, &v->dtype, err) != OK ||
        numbers_take(j, "shape", &v->rank, v->shape, err) != OK ||
        numbers_take(j, "stride", &v->rank, v->stride, err) != OK ||
        json_get_int(j, "alias", &alias, err) != OK ||
        json_get_int(j, "bytes", &v->bytes, err) != OK || span_of(v, &span, err) != OK)
        return err->code;
    if (alias < -1 || alias >= (int64_t)index)
        return err_raise(err, ERR_FORMAT, "alias %" PRId64 " does not point to an earlier entry",
                         alias);
    if (v->bytes < span || v->bytes > STORAGE_MAX)
        return err_raise(err, ERR_FORMAT, "%" PRId64 " bytes, but its strides span %" PRId64,
                         v->bytes, span);
    v->alias = (int)alias;
    return OK;
}

/* JSON has no infinity and no NaN: they come as text. */
static enum err_code real_take(const json_t *j, double *ret, struct err *err)
{
    static const struct {
        const char *name;
        double value;
    } special[] = { { "inf", INFINITY }, { "-inf", -INFINITY }, { "nan", NAN } };
    const char *text = json_string_value(json_object_get(j, "r"));
    for (size_t i = 0; text != NULL && i < COUNT(special); i++)
        if (strcmp(text, special[i].name) == 0) {
            *ret = special[i].value;
            return OK;
        }
    return json_get_real(j, "r", ret, err);
}

static enum err_code value_take(struct arena *a, const json_t *j, size_t index, struct value_sig *v,
                                struct err *err)
{
    *v = (struct value_sig){ .alias = -1, .text = "" };
    if (!json_is_object(j))
        return err_raise(err, ERR_FORMAT, "entry %zu is no object", index);
    if (name_take(a, j, "name", &v->name, err) != OK || kind_take(j, &v->kind, err) != OK)
        return err->code;
    if (v->name[0] == '\0')
        return err_raise(err, ERR_FORMAT, "entry %zu has no name", index);
    switch ((enum ca_kind)v->kind) {
    case CA_TENSOR:
        return tensor_take(j, index, v, err);
    case CA_INT:
        return json_get_int(j, "i", &v->i, err);
    case CA_FLAG:
        if (json_get_int(j, "i", &v->i, err) != OK)
            return err->code;
        if (v->i < 0 || v->i > 1)
            return err_raise(err, ERR_FORMAT, "flag '%s' is neither 0 nor 1", v->name);
        return OK;
    case CA_REAL:
        return real_take(j, &v->r, err);
    case CA_TEXT:
        return name_take(a, j, "text", &v->text, err);
    case CA_NONE:
        return OK;
    }
    return OK;
}

static enum err_code list_take(struct arena *a, const json_t *j, const char *key,
                               struct sig_list *ret, struct err *err)
{
    json_t *list;
    if (json_get_list(j, key, &list, err) != OK)
        return err->code;
    ret->n = json_array_size(list);
    if (ret->n > VALUES_MAX)
        return err_raise(err, ERR_LIMIT, "'%s' has %zu values, limit %d", key, ret->n, VALUES_MAX);
    ret->v = arena_new(a, struct value_sig, ret->n);
    for (size_t i = 0; i < ret->n; i++)
        if (value_take(a, json_array_get(list, i), i, &ret->v[i], err) != OK)
            return err_within(err, "signature, %s %zu", key, i);
    return OK;
}

enum err_code signature_parse(struct arena *a, const json_t *j, struct signature *ret,
                              struct err *err)
{
    struct signature s = { 0 };
    if (list_take(a, j, "in", &s.in, err) != OK || list_take(a, j, "param", &s.param, err) != OK ||
        list_take(a, j, "out", &s.out, err) != OK)
        return err->code;
    if (s.out.n == 0)
        return err_raise(err, ERR_FORMAT, "signature: no outputs");
    *ret = s;
    return OK;
}

static void value_print(const char *role, const struct value_sig *v, struct buf *b)
{
    buf_addf(b, "%-5s %-24s ", role, v->name);
    switch ((enum ca_kind)v->kind) {
    case CA_TENSOR:
        buf_addf(b, "%s [", dtypes[v->dtype].name);
        for (int d = 0; d < v->rank; d++)
            buf_addf(b, "%s%" PRId64, d ? ", " : "", v->shape[d]);
        buf_addz(b, "]");
        if (v->alias >= 0)
            buf_addf(b, " same storage as entry %d", v->alias);
        break;
    case CA_INT:
        buf_addf(b, "int %" PRId64, v->i);
        break;
    case CA_FLAG:
        buf_addz(b, v->i ? "True" : "False");
        break;
    case CA_REAL:
        buf_addf(b, "real %g", v->r);
        break;
    case CA_TEXT:
        buf_addf(b, "text '%s'", v->text);
        break;
    case CA_NONE:
        buf_addz(b, "None");
        break;
    }
    buf_addz(b, "\n");
}

void signature_print(const struct signature *s, struct buf *b)
{
    const struct {
        const char *role;
        const struct sig_list *list;
    } part[] = { { "in", &s->in }, { "param", &s->param }, { "out", &s->out } };
    for (size_t p = 0; p < COUNT(part); p++)
        for (size_t i = 0; i < part[p].list->n; i++)
            value_print(part[p].role, &part[p].list->v[i], b);
}
