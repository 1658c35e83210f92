#include "llm/repair.h"

#include <math.h>

#include "core/own.h"
#include "llm/wire.h"

#define DEPTH_MAX 32 /* of schemas that are followed; values deeper than that are left alone */

const char *repair_name(unsigned bit)
{
    static const struct {
        unsigned bit;
        const char *name;
    } rows[] = {
#define X(id, text, shift) { id, text },
        REPAIRS(X)
#undef X
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].bit == bit)
            return rows[i].name;
    return NULL;
}

/* ---- text to a value ---- */

static json_t *load(struct str s, size_t flags, json_error_t *at)
{
    return json_loadb(s.ptr ? s.ptr : "", s.len, flags | JSON_DECODE_ANY, at);
}

/* The first value of the text; what follows it, but for white space, is REPAIR_TAIL. */
static json_t *load_head(struct str s, unsigned *done, json_error_t *at)
{
    json_t *j = load(s, 0, at);
    json_error_t head_at;
    if (j != NULL)
        return j;
    j = load(s, JSON_DISABLE_EOF_CHECK, &head_at);
    if (j != NULL)
        *done |= REPAIR_TAIL;
    return j;
}

static json_t *load_mended(struct str s, unsigned *done, json_error_t *at)
{
    unsigned mended = 0;
    json_t *j = load(s, 0, at);
    if (j != NULL)
        return j;
    own_arena tmp = { 0 };
    struct str better = wire_mend(&tmp, s, MEND_ARGS, &mended);
    unsigned tail = 0;
    json_error_t again;
    j = mended != 0 ? load_head(better, &tail, &again) : load_head(s, &tail, &again);
    if (j == NULL)
        return NULL;
    *done |= tail | (mended & MEND_CONTROL ? (unsigned)REPAIR_CONTROL : 0) |
             (mended & MEND_UNICODE ? (unsigned)REPAIR_UNICODE : 0);
    return j;
}

/* ---- values by their schema ---- */

enum kind { K_OBJECT, K_ARRAY, K_STRING, K_INTEGER, K_NUMBER, K_BOOLEAN, K_NULL };

static unsigned type_bit(const char *name)
{
    static const char *const names[] = { "object", "array",   "string", "integer",
                                         "number", "boolean", "null" };
    for (size_t i = 0; name != NULL && i < COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return 1u << i;
    return 0;
}

/* The types that a schema allows, as a mask; 0: it does not say. */
static unsigned types_of(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"), *one, *sub;
    unsigned mask = type_bit(json_string_value(type));
    size_t i;
    json_array_foreach(type, i, one) mask |= type_bit(json_string_value(one));
    static const char *const unions[] = { "anyOf", "oneOf" };
    for (size_t u = 0; u < COUNT(unions); u++)
        json_array_foreach(json_object_get(schema, unions[u]), i, sub) mask |=
            type_bit(json_string_value(json_object_get(sub, "type")));
    return mask;
}

static bool fits(const json_t *v, unsigned types)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return types & 1u << K_OBJECT;
    case JSON_ARRAY:
        return types & 1u << K_ARRAY;
    case JSON_STRING:
        return types & 1u << K_STRING;
    case JSON_INTEGER:
        return types & (1u << K_INTEGER | 1u << K_NUMBER);
    case JSON_REAL:
        return types & 1u << K_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE:
        return types & 1u << K_BOOLEAN;
    case JSON_NULL:
        return types & 1u << K_NULL;
    }
    return false;
}

static json_t *string_of_list(const json_t *list)
{
    own_arena tmp = { 0 };
    struct buf b = { .arena = &tmp, .max = SIZE_MAX / 4 };
    const json_t *v;
    size_t i;
    json_array_foreach(list, i, v)
    {
        if (!json_is_string(v))
            return NULL;
        buf_add(&b, (struct str){ json_string_value(v), json_string_length(v) });
    }
    return json_stringn(b.ptr ? b.ptr : "", b.len);
}

/* "true", "3", "2.0" where the schema wants no text. */
static json_t *scalar_of_text(struct str s, unsigned types)
{
    if (types & 1u << K_BOOLEAN && (wire_same(s, "true") || wire_same(s, "false")))
        return json_boolean(wire_same(s, "true"));
    if (types & 1u << K_NULL && (wire_same(s, "null") || wire_same(s, "none")))
        return json_null();
    if (!(types & (1u << K_INTEGER | 1u << K_NUMBER)))
        return NULL;
    json_t *j = load(str_trim(s), 0, NULL);
    if (j != NULL && !json_is_number(j)) {
        json_decref(j);
        return NULL;
    }
    return j;
}

/* 3.0 where a whole number is wanted. */
static json_t *whole_of_real(const json_t *v, unsigned types)
{
    double d = json_real_value(v);
    if (!(types & 1u << K_INTEGER) || d != trunc(d) || fabs(d) > 9e15)
        return NULL;
    return json_integer((json_int_t)d);
}

/* A better value for v, a new reference, or NULL when v is right or past help. */
static json_t *coerced(const json_t *v, unsigned types, unsigned *done)
{
    json_t *j = NULL;
    if (types == 0 || fits(v, types))
        return NULL;
    if (json_is_real(v)) {
        j = whole_of_real(v, types);
        *done |= j ? (unsigned)REPAIR_COERCED : 0;
    } else if (json_is_array(v) && types & 1u << K_STRING) {
        j = string_of_list(v);
        *done |= j ? (unsigned)REPAIR_JOINED : 0;
    } else if (json_is_string(v)) {
        struct str s = { json_string_value(v), json_string_length(v) };
        j = scalar_of_text(s, types);
        if (j != NULL && !fits(j, types)) {
            json_t *whole = json_is_real(j) ? whole_of_real(j, types) : NULL;
            json_decref(j);
            j = whole;
        }
        *done |= j ? (unsigned)REPAIR_COERCED : 0;
        if (j == NULL && types & (1u << K_OBJECT | 1u << K_ARRAY)) {
            unsigned inner = 0;
            json_error_t at;
            j = load_mended(str_trim(s), &inner, &at);
            if (j != NULL && !fits(j, types)) {
                json_decref(j);
                j = NULL;
            }
            *done |= j ? (unsigned)REPAIR_UNQUOTED | inner : 0;
        }
    }
    return j;
}

/* Follow the schema down, replacing members in place. */
static void by_schema(json_t *v, const json_t *schema, unsigned *done, int depth)
{
    if (depth >= DEPTH_MAX || !json_is_object(schema))
        return;
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *items = json_object_get(schema, "items"), *sub;
    const char *key;
    size_t i, n = json_array_size(v);
    json_object_foreach((json_t *)properties, key, sub)
    {
        json_t *member = json_object_get(v, key);
        json_t *better = member ? coerced(member, types_of(sub), done) : NULL;
        if (better != NULL && json_object_set_new(v, key, better) != 0)
            return;
        if (member != NULL)
            by_schema(json_object_get(v, key), sub, done, depth + 1);
    }
    for (i = 0; json_is_object(items) && i < n; i++) {
        json_t *better = coerced(json_array_get(v, i), types_of(items), done);
        if (better != NULL && json_array_set_new(v, i, better) != 0)
            return;
        by_schema(json_array_get(v, i), items, done, depth + 1);
    }
}

/* ---- */

enum err_code repair_args(struct str args, const json_t *schema, size_t max, json_t **ret,
                          unsigned *ret_done, struct err *err)
{
    unsigned done = 0;
    json_error_t at = { 0 };
    if (args.len > max)
        return err_raise(err, ERR_LIMIT, "arguments of %zu bytes, limit %zu", args.len, max);
    if (str_trim(args).len == 0) {
        *ret = json_object();
        *ret_done = REPAIR_EMPTY;
        return OK;
    }
    own_json j = load_mended(args, &done, &at);
    if (j == NULL)
        return err_raise(err, ERR_FORMAT, "arguments are not JSON: line %d, column %d: %s", at.line,
                         at.column, at.text);
    if (json_is_string(j)) { /* the whole object as a text, once */
        json_t *inner =
            load_mended((struct str){ json_string_value(j), json_string_length(j) }, &done, &at);
        if (json_is_object(inner)) {
            json_decref(j);
            j = inner;
            done |= REPAIR_NESTED;
        } else {
            json_decref(inner);
        }
    }
    if (json_is_null(j)) {
        json_decref(j);
        j = json_object();
        done |= REPAIR_EMPTY;
    }
    if (!json_is_object(j))
        return err_raise(err, ERR_FORMAT, "arguments are JSON, but not an object");
    by_schema(j, schema, &done, 0);
    *ret = own_json_take(&j);
    *ret_done = done;
    return OK;
}
