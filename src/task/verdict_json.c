/* One table binds members of struct verdict to places in the JSON, both ways. */
#include <math.h>
#include <stddef.h>

#include "core/json.h"
#include "task/verdict.h"

enum member_kind {
    IS_TEXT,
    IS_INT,  /* int */
    IS_LONG, /* int64_t */
    IS_REAL,
    IS_MEASURED, /* a real above 0, or not measured */
    IS_ENUM,     /* an enum whose names `name_of` lists from 0 */
    IS_ARM,
    IS_RATIO
};

struct member {
    const char *section, *key; /* section "": at the top */
    enum member_kind kind;
    size_t at, size;
    const char *(*name_of)(int);
    int names;
};

static const char *status_at(int i)
{
    return verdict_status_name((enum verdict_status)i);
}

static const char *precision_at(int i)
{
    return precision_name((enum precision)i);
}

static const char *preset_at(int i)
{
    return preset_name((enum preset)i);
}

static const char *against_at(int i)
{
    return i == AGAINST_BEST ? "best" : "paper";
}

static const char *contract_at(int i)
{
    return contract_name((enum contract)i);
}

static const char *target_at(int i)
{
    return target_name((enum target)i);
}

#define AT(m) .at = offsetof(struct verdict, m), .size = sizeof(((struct verdict *)0)->m)
#define TEXT(s, k, m)                                  \
    {                                                  \
        .section = s, .key = k, .kind = IS_TEXT, AT(m) \
    }
#define INT(s, k, m)                                  \
    {                                                 \
        .section = s, .key = k, .kind = IS_INT, AT(m) \
    }
#define LONG(s, k, m)                                  \
    {                                                  \
        .section = s, .key = k, .kind = IS_LONG, AT(m) \
    }
#define REAL(s, k, m)                                  \
    {                                                  \
        .section = s, .key = k, .kind = IS_REAL, AT(m) \
    }
#define MEASURED(s, k, m)                                  \
    {                                                      \
        .section = s, .key = k, .kind = IS_MEASURED, AT(m) \
    }
#define ENUM(s, k, m, f, n)                                                          \
    {                                                                                \
        .section = s, .key = k, .kind = IS_ENUM, AT(m), .name_of = (f), .names = (n) \
    }
#define ARM(k, m)                                             \
    {                                                         \
        .section = "time_us", .key = k, .kind = IS_ARM, AT(m) \
    }
#define RATIO(k, m)                                             \
    {                                                           \
        .section = "speedup", .key = k, .kind = IS_RATIO, AT(m) \
    }

static const struct member members[] = {
    TEXT("", "id", id),
    TEXT("task", "hash", task_hash),
    TEXT("task", "name", task_name),
    TEXT("candidate", "hash", candidate_hash),
    ENUM("candidate", "contract", contract, contract_at, CONTRACTS),
    ENUM("candidate", "target", target, target_at, TARGET_CPU + 1),
    TEXT("candidate", "author", author),
    ENUM("", "status", status, status_at, VERDICT_UNDECIDED + 1),
    TEXT("", "reason", reason),
    TEXT("", "build_log", build_log),
    ENUM("tolerance", "preset", preset, preset_at, PRESET_STRICT + 1),
    REAL("tolerance", "used", tol_used),
    ENUM("precision", "class", precision, precision_at, PREC_NONE + 1),
    MEASURED("precision", "rel_l2", rel_l2),
    ARM("candidate", time_us[ARM_CANDIDATE]),
    ARM("eager", time_us[ARM_EAGER]),
    ARM("compile", time_us[ARM_COMPILE]),
    ARM("best", time_us[ARM_BEST]),
    MEASURED("", "span_us", span_us),
    MEASURED("", "alone_us", alone_us),
    MEASURED("kernels_us", "candidate", kernels_us[ARM_CANDIDATE]),
    MEASURED("kernels_us", "eager", kernels_us[ARM_EAGER]),
    MEASURED("kernels_us", "compile", kernels_us[ARM_COMPILE]),
    MEASURED("setup", "ms", setup_ms),
    LONG("setup", "bytes", keep_bytes),
    RATIO("vs_eager", vs_eager),
    RATIO("vs_compile", vs_compile),
    RATIO("vs_best", vs_best),
    ENUM("reward", "against", against, against_at, AGAINST_BEST + 1),
    INT("reward", "milestone", reward_milestone),
    REAL("reward", "speedup", reward_speedup),
    LONG("floor", "bytes", floor_bytes),
    REAL("floor", "flops", floor_flops),
    MEASURED("floor", "us", floor_us),
    MEASURED("floor", "share", floor_share),
    TEXT("device", "uuid", device_uuid),
    TEXT("device", "name", device_name),
    TEXT("device", "driver", driver),
    TEXT("device", "clocks", clocks),
    TEXT("device", "throttle", throttle),
    TEXT("versions", "torch", torch_version),
    TEXT("versions", "compiler", compiler_version),
    TEXT("versions", "cuda", cuda_version),
    TEXT("versions", "product", product_version),
    INT("box", "rung", box_rung),
    TEXT("box", "limits_by", box_limits_by),
    LONG("cost_ms", "build", cost_build_ms),
    LONG("cost_ms", "start", cost_start_ms),
    LONG("cost_ms", "check", cost_check_ms),
    LONG("cost_ms", "time", cost_time_ms),
};

_Static_assert(sizeof(enum verdict_status) == sizeof(int) && sizeof(enum target) == sizeof(int),
               "enums are read and written as int");

/* Length of the UTF-8 sequence that begins at p, 0 when it is none. */
static size_t utf8_len(const char *p, size_t room)
{
    unsigned char c = (unsigned char)p[0];
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : 4;
    if ((n == 4 && (c < 0xf0 || c > 0xf4)) || n > room)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)p[i] & 0xc0) != 0x80)
            return 0;
    json_t *probe = n > 2 ? json_stringn(p, n) : NULL; /* surrogates and overlong forms */
    bool good = n <= 2 || probe != NULL;
    json_decref(probe);
    return good ? n : 0;
}

/* A compiler's words may be any bytes, and fixed fields cut them anywhere. */
static json_t *text_json(const char *z)
{
    json_t *plain = json_string(z);
    if (plain != NULL)
        return plain;
    own_arena tmp = { 0 };
    size_t len = strlen(z);
    char *clean = arena_new(&tmp, char, len + 1);
    for (size_t i = 0; i < len;) {
        size_t n = utf8_len(z + i, len - i);
        if (n == 0)
            clean[i] = '?';
        else
            memcpy(clean + i, z + i, n);
        i += n ? n : 1;
    }
    return json_string(clean);
}

static json_t *real_json(double x)
{
    if (isfinite(x))
        return json_real(x);
    return json_string(isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

static json_t *arm_json(const struct arm_time *t)
{
    if (t->windows == 0)
        return json_null();
    json_t *j = json_object();
    json_object_set_new(j, "median", real_json(t->median));
    json_object_set_new(j, "lo", real_json(t->lo));
    json_object_set_new(j, "hi", real_json(t->hi));
    json_object_set_new(j, "windows", json_integer(t->windows));
    json_object_set_new(j, "void", json_integer(t->void_windows));
    return j;
}

static json_t *ratio_json(const struct ratio *r)
{
    if (r->median == 0) /* its arm was not measured */
        return json_null();
    json_t *j = json_object();
    json_object_set_new(j, "median", real_json(r->median));
    json_object_set_new(j, "lo", real_json(r->lo));
    json_object_set_new(j, "hi", real_json(r->hi));
    return j;
}

static json_t *member_json(const struct member *m, const void *p)
{
    switch (m->kind) {
    case IS_TEXT:
        return text_json(p);
    case IS_INT:
        return json_integer(*(const int *)p);
    case IS_LONG:
        return json_integer(*(const int64_t *)p);
    case IS_REAL:
        return real_json(*(const double *)p);
    case IS_MEASURED:
        return *(const double *)p == 0 ? json_null() : real_json(*(const double *)p);
    case IS_ENUM:
        return json_string(m->name_of((int)*(const unsigned *)p));
    case IS_ARM:
        return arm_json(p);
    case IS_RATIO:
        return ratio_json(p);
    }
    return json_null();
}

static json_t *checks_json(const struct verdict *v)
{
    json_t *list = json_array();
    for (int i = 0; i < v->n_checks; i++) {
        const struct check *c = &v->check[i];
        json_t *j = json_object();
        json_object_set_new(j, "family", text_json(c->family));
        json_object_set_new(j, "output", text_json(c->output));
        json_object_set_new(j, "misses", json_integer(c->misses));
        json_object_set_new(j, "n", json_integer(c->n));
        json_object_set_new(j, "first", json_integer(c->first));
        json_object_set_new(j, "max_err", real_json(c->max_err));
        json_object_set_new(j, "rel_l2", real_json(c->rel_l2));
        json_object_set_new(j, "got", real_json(c->got));
        json_object_set_new(j, "want", real_json(c->want));
        json_array_append_new(list, j);
    }
    return list;
}

json_t *verdict_json(const struct verdict *v)
{
    json_t *top = json_object();
    json_object_set_new(top, "schema", json_string(VERDICT_SCHEMA));
    for (size_t i = 0; i < COUNT(members); i++) {
        const struct member *m = &members[i];
        json_t *into = top;
        if (m->section[0] != '\0') {
            into = json_object_get(top, m->section);
            if (into == NULL) {
                into = json_object();
                json_object_set_new(top, m->section, into);
            }
        }
        json_object_set_new(into, m->key, member_json(m, (const char *)v + m->at));
        if (m->at == offsetof(struct verdict, time_us[ARM_BEST]) &&
            v->time_us[ARM_BEST].windows > 0)
            json_object_set_new(json_object_get(into, m->key), "name", text_json(v->best_name));
        if (m->at == offsetof(struct verdict, rel_l2))
            json_object_set_new(top, "checks", checks_json(v));
    }
    json_t *notes = json_array();
    for (int i = 0; i < v->n_notes; i++)
        json_array_append_new(notes, text_json(v->note[i]));
    json_object_set_new(top, "notes", notes);
    return top;
}

static enum err_code text_take(const json_t *j, const char *key, char *p, size_t room,
                               struct err *err)
{
    struct str s;
    if (json_get_text(j, key, &s, err) != OK)
        return err->code;
    if (s.len >= room || memchr(s.ptr, '\0', s.len) != NULL)
        return err_raise(err, ERR_FORMAT, "'%s' has %zu bytes, room for %zu", key, s.len, room - 1);
    memcpy(p, s.ptr, s.len);
    p[s.len] = '\0';
    return OK;
}

static enum err_code real_take(const json_t *j, const char *key, double *ret, struct err *err)
{
    const char *text = json_string_value(json_object_get(j, key));
    if (text == NULL)
        return json_get_real(j, key, ret, err);
    if (strcmp(text, "nan") == 0)
        *ret = NAN;
    else if (strcmp(text, "inf") == 0)
        *ret = INFINITY;
    else if (strcmp(text, "-inf") == 0)
        *ret = -INFINITY;
    else
        return err_raise(err, ERR_FORMAT, "'%s' is no number", key);
    return OK;
}

static enum err_code int_take(const json_t *j, const char *key, int *ret, struct err *err)
{
    int64_t x;
    if (json_get_int(j, key, &x, err) != OK)
        return err->code;
    if (x < INT32_MIN || x > INT32_MAX)
        return err_raise(err, ERR_FORMAT, "'%s' is out of range", key);
    *ret = (int)x;
    return OK;
}

static enum err_code enum_take(const struct member *m, const json_t *j, void *p, struct err *err)
{
    struct str s;
    if (json_get_text(j, m->key, &s, err) != OK)
        return err->code;
    for (int i = 0; i < m->names; i++)
        if (str_eq(s, str_from(m->name_of(i)))) {
            *(unsigned *)p = (unsigned)i;
            return OK;
        }
    return err_raise(err, ERR_FORMAT, "'%s' is '%.*s', which is not known", m->key, STR_FMT(s));
}

static enum err_code arm_take(const json_t *j, const char *key, struct arm_time *t, struct err *err)
{
    json_t *o;
    if (json_is_null(json_object_get(j, key)))
        return OK;
    if (json_get_map(j, key, &o, err) != OK || real_take(o, "median", &t->median, err) != OK ||
        real_take(o, "lo", &t->lo, err) != OK || real_take(o, "hi", &t->hi, err) != OK ||
        int_take(o, "windows", &t->windows, err) != OK ||
        int_take(o, "void", &t->void_windows, err) != OK)
        return err_within(err, "%s", key);
    return OK;
}

static enum err_code ratio_take(const json_t *j, const char *key, struct ratio *r, struct err *err)
{
    json_t *o;
    if (json_is_null(json_object_get(j, key)))
        return OK;
    if (json_get_map(j, key, &o, err) != OK || real_take(o, "median", &r->median, err) != OK ||
        real_take(o, "lo", &r->lo, err) != OK || real_take(o, "hi", &r->hi, err) != OK)
        return err_within(err, "%s", key);
    return OK;
}

static enum err_code member_take(const struct member *m, const json_t *j, void *p, struct err *err)
{
    switch (m->kind) {
    case IS_TEXT:
        return text_take(j, m->key, p, m->size, err);
    case IS_INT:
        return int_take(j, m->key, p, err);
    case IS_LONG:
        return json_get_int(j, m->key, p, err);
    case IS_REAL:
        return real_take(j, m->key, p, err);
    case IS_MEASURED:
        *(double *)p = 0;
        return json_is_null(json_object_get(j, m->key)) ? OK : real_take(j, m->key, p, err);
    case IS_ENUM:
        return enum_take(m, j, p, err);
    case IS_ARM:
        return arm_take(j, m->key, p, err);
    case IS_RATIO:
        return ratio_take(j, m->key, p, err);
    }
    return OK;
}

static enum err_code check_take(const json_t *j, struct check *c, struct err *err)
{
    if (text_take(j, "family", c->family, sizeof c->family, err) != OK ||
        text_take(j, "output", c->output, sizeof c->output, err) != OK ||
        json_get_int(j, "misses", &c->misses, err) != OK ||
        json_get_int(j, "n", &c->n, err) != OK || json_get_int(j, "first", &c->first, err) != OK ||
        real_take(j, "max_err", &c->max_err, err) != OK ||
        real_take(j, "rel_l2", &c->rel_l2, err) != OK || real_take(j, "got", &c->got, err) != OK ||
        real_take(j, "want", &c->want, err) != OK)
        return err->code;
    return OK;
}

static enum err_code lists_take(const json_t *j, struct verdict *v, struct err *err)
{
    json_t *checks, *notes;
    if (json_get_list(j, "checks", &checks, err) != OK ||
        json_get_list(j, "notes", &notes, err) != OK)
        return err->code;
    if (json_array_size(checks) > CHECKS_MAX || json_array_size(notes) > NOTES_MAX)
        return err_raise(err, ERR_LIMIT, "more than %d checks or %d notes", CHECKS_MAX, NOTES_MAX);
    v->n_checks = (int)json_array_size(checks);
    for (int i = 0; i < v->n_checks; i++)
        if (check_take(json_array_get(checks, (size_t)i), &v->check[i], err) != OK)
            return err_within(err, "check %d", i);
    v->n_notes = (int)json_array_size(notes);
    for (int i = 0; i < v->n_notes; i++) {
        const json_t *n = json_array_get(notes, (size_t)i);
        if (!json_is_string(n) || json_string_length(n) >= sizeof v->note[i])
            return err_raise(err, ERR_FORMAT, "note %d is no text of that size", i);
        memcpy(v->note[i], json_string_value(n), json_string_length(n) + 1);
    }
    return OK;
}

enum err_code verdict_from_json(const json_t *j, struct verdict *ret, struct err *err)
{
    struct str schema;
    if (json_get_text(j, "schema", &schema, err) != OK)
        return err_within(err, "verdict");
    if (!str_eq(schema, S(VERDICT_SCHEMA)))
        return err_raise(err, ERR_FORMAT, "verdict: schema '%.*s', wanted '" VERDICT_SCHEMA "'",
                         STR_FMT(schema));
    own_mem struct verdict *v = calloc(1, sizeof *v);
    if (v == NULL)
        return err_sys(err, "room for a verdict");
    for (size_t i = 0; i < COUNT(members); i++) {
        const struct member *m = &members[i];
        const json_t *from = m->section[0] ? json_object_get(j, m->section) : j;
        if (member_take(m, from, (char *)v + m->at, err) != OK)
            return err_within(err, "verdict, %s", m->section[0] ? m->section : "top");
    }
    const json_t *best = json_object_get(json_object_get(j, "time_us"), "best");
    if (lists_take(j, v, err) != OK ||
        (json_is_object(best) &&
         text_take(best, "name", v->best_name, sizeof v->best_name, err) != OK))
        return err_within(err, "verdict");
    *ret = *v;
    return OK;
}
