#include "core/json.h"

enum err_code json_parse(struct str bytes, size_t max, json_t **ret, struct err *err)
{
    json_error_t at;
    if (bytes.len > max)
        return err_raise(err, ERR_LIMIT, "JSON of %zu bytes, limit %zu", bytes.len, max);
    json_t *j = json_loadb(bytes.ptr ? bytes.ptr : "", bytes.len, JSON_REJECT_DUPLICATES, &at);
    if (j == NULL)
        return err_raise(err, ERR_FORMAT, "JSON line %d: %s", at.line, at.text);
    *ret = j;
    return OK;
}

static enum err_code member(const json_t *obj, const char *key, const char *want, bool right,
                            struct err *err)
{
    if (right)
        return OK;
    const json_t *j = json_object_get(obj, key);
    return err_raise(err, ERR_FORMAT, "'%s' %s %s", key, j ? "is not" : "is missing: wanted", want);
}

enum err_code json_get_text(const json_t *obj, const char *key, struct str *ret, struct err *err)
{
    json_t *j = json_object_get(obj, key);
    if (member(obj, key, "text", json_is_string(j), err) != OK)
        return err->code;
    *ret = (struct str){ json_string_value(j), json_string_length(j) };
    return OK;
}

enum err_code json_get_int(const json_t *obj, const char *key, int64_t *ret, struct err *err)
{
    json_t *j = json_object_get(obj, key);
    if (member(obj, key, "a whole number", json_is_integer(j), err) != OK)
        return err->code;
    *ret = (int64_t)json_integer_value(j);
    return OK;
}

enum err_code json_get_real(const json_t *obj, const char *key, double *ret, struct err *err)
{
    json_t *j = json_object_get(obj, key);
    if (member(obj, key, "a number", json_is_number(j), err) != OK)
        return err->code;
    *ret = json_number_value(j);
    return OK;
}

enum err_code json_get_flag(const json_t *obj, const char *key, bool *ret, struct err *err)
{
    json_t *j = json_object_get(obj, key);
    if (member(obj, key, "true or false", json_is_boolean(j), err) != OK)
        return err->code;
    *ret = json_is_true(j);
    return OK;
}

enum err_code json_get_list(const json_t *obj, const char *key, json_t **ret, struct err *err)
{
    json_t *j = json_object_get(obj, key);
    if (member(obj, key, "a list", json_is_array(j), err) != OK)
        return err->code;
    *ret = j;
    return OK;
}

enum err_code json_get_map(const json_t *obj, const char *key, json_t **ret, struct err *err)
{
    json_t *j = json_object_get(obj, key);
    if (member(obj, key, "an object", json_is_object(j), err) != OK)
        return err->code;
    *ret = j;
    return OK;
}
