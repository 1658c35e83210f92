#include "app/endpoint.h"

#include "core/json.h"
#include "core/own.h"
#include "llm/wire.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "task/candidate.h"

#define RECORD_MAX ((size_t)256 << 10)
#define SCHEMA "cuda-agent/endpoint/1"

const char *const endpoint_dialects[] = { "auto", "openai", "anthropic", NULL };

/* ---- what is kept ---- */

static struct str base_of(const char *url)
{
    struct str base = str_from(url);
    while (base.len > 0 && base.ptr[base.len - 1] == '/')
        base.len--;
    if (str_ends(base, S("/v1")))
        base.len -= 3;
    return base;
}

static enum err_code record_path(struct arena *a, const char *url, const char *model,
                                 const char **ret, struct err *err)
{
    const char *home = NULL;
    struct str parts[] = { base_of(url), str_from(model) };
    char hash[HASH_HEX];
    hash_parts(parts, COUNT(parts), hash);
    if (home_dir(a, &home, err) != OK)
        return err->code;
    const char *dir = path_join(a, home, "endpoints");
    if (dir_make(dir, dir_mode(), err) != OK)
        return err->code;
    *ret = arena_fmt(a, "%s/%.32s.json", dir, hash);
    return OK;
}

static enum err_code record_fill(struct arena *a, const char *url, const json_t *j,
                                 struct endpoint_record *r, struct err *err)
{
    struct str schema, dialect, actual;
    json_t *compat, *steps, *step;
    size_t i;
    if (json_get_text(j, "schema", &schema, err) != OK ||
        json_get_text(j, "dialect", &dialect, err) != OK ||
        json_get_text(j, "model", &actual, err) != OK ||
        json_get_int(j, "window", &r->window, err) != OK ||
        json_get_list(j, "steps", &steps, err) != OK ||
        json_get_map(j, "compat", &compat, err) != OK)
        return err->code;
    if (!str_eq(schema, S(SCHEMA)))
        return err_raise(err, ERR_FORMAT, "schema '%.*s', wanted " SCHEMA, STR_FMT(schema));
    r->dialect = str_eq(dialect, S("anthropic")) ? DIALECT_ANTHROPIC : DIALECT_OPENAI;
    r->model = str_z(a, actual);
    r->compat = compat_for(r->dialect, str_from(url), actual);
    const char **list = arena_new(a, const char *, json_array_size(steps));
    json_array_foreach(steps, i, step) list[i] =
        str_z(a, str_from(json_is_string(step) ? json_string_value(step) : ""));
    r->steps = list;
    r->n_steps = json_array_size(steps);
    return compat_read(&r->compat, compat, err);
}

enum err_code endpoint_record_read(struct arena *a, const char *url, const char *model,
                                   struct endpoint_record *ret, struct err *err)
{
    const char *path = NULL;
    struct str text;
    own_json j = NULL;
    struct endpoint_record r = { .found = true };
    if (record_path(a, url, model, &path, err) != OK)
        return err->code;
    if (!path_exists(path)) {
        *ret = (struct endpoint_record){ 0 };
        return OK;
    }
    if (file_read(a, path, RECORD_MAX, &text, err) != OK)
        return err->code;
    if (json_parse(text, RECORD_MAX, &j, err) != OK || record_fill(a, url, j, &r, err) != OK) {
        err_within(err, "%s", path);
        return err_hint(err, "remove that file; 'cuda-agent doctor --endpoint %s' writes it anew",
                        url);
    }
    *ret = r;
    return OK;
}

enum err_code endpoint_record_write(const char *url, const char *model,
                                    const struct endpoint_record *record, struct err *err)
{
    own_arena a = { 0 };
    const char *path = NULL;
    json_t *steps = json_array();
    for (size_t i = 0; i < record->n_steps; i++)
        json_array_append_new(steps, json_string(record->steps[i]));
    own_json j = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o}", "schema", SCHEMA, "url",
                           str_z(&a, base_of(url)), "model", record->model, "dialect",
                           record->dialect == DIALECT_ANTHROPIC ? "anthropic" : "openai", "at",
                           (json_int_t)clock_utc_us(), "window", (json_int_t)record->window,
                           "steps", steps, "compat", compat_json(&record->compat));
    own_mem char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
    if (text == NULL)
        return err_raise(err, ERR_FORMAT, "a model's name or address that is not UTF-8");
    if (record_path(&a, url, model, &path, err) != OK)
        return err->code;
    return file_write(path, str_from(text), 0600, err);
}

/* ---- options to a spec ---- */

static const char *or_null(struct arena *a, struct str s)
{
    return s.len > 0 ? str_z(a, s) : NULL;
}

/* "limit=max_tokens stream=true ...", as compat_set() takes it. */
static void settings_add(struct buf *b, const struct compat *c)
{
    own_json j = compat_json(c);
    const char *key;
    json_t *v;
    json_object_foreach(j, key, v) buf_addf(b, "%s=%s ", key,
                                            json_is_string(v) ? json_string_value(v)
                                            : json_is_true(v) ? "true"
                                                              : "false");
}

static enum dialect dialect_of(const struct endpoint_options *o, const struct endpoint_record *r)
{
    if (o->dialect != 0)
        return o->dialect == 2 ? DIALECT_ANTHROPIC : DIALECT_OPENAI;
    if (r->found)
        return r->dialect;
    return wire_holds(o->url, "anthropic") ? DIALECT_ANTHROPIC : DIALECT_OPENAI;
}

enum err_code endpoint_spec(struct arena *a, const struct endpoint_options *o, struct llm_spec *ret,
                            struct endpoint_record *ret_record, struct err *err)
{
    struct buf settings = { .arena = a, .max = RECORD_MAX };
    struct endpoint_record r;
    struct compat checked;
    if (o->url.len == 0) {
        err_raise(err, ERR_USAGE, "no endpoint is named");
        return err_hint(err, "--endpoint http://HOST:PORT, or 'endpoint: ...' in cuda-agent.yaml");
    }
    if (o->key_env.len > 0 && o->key_file.len > 0)
        return err_raise(err, ERR_USAGE, "--key-env and --key-file: one of them");
    const char *url = str_z(a, o->url), *model = str_z(a, o->model);
    if (endpoint_record_read(a, url, model, &r, err) != OK)
        return err->code;
    if (r.found && model[0] == '\0') { /* what later runs have learnt stands under its name */
        model = r.model;
        if (endpoint_record_read(a, url, model, &r, err) != OK)
            return err->code;
    }
    if (model[0] == '\0') {
        err_raise(err, ERR_USAGE, "which model of %s?", url);
        return err_hint(err, "--model NAME; 'cuda-agent doctor --endpoint %s' lists them", url);
    }
    enum dialect dialect = dialect_of(o, &r);
    if (r.found && r.dialect == dialect)
        settings_add(&settings, &r.compat);
    else
        r = (struct endpoint_record){ .dialect = dialect,
                                      .window = r.window,
                                      .compat = compat_for(dialect, o->url, str_from(model)) };
    r.model = model;
    checked = r.compat;
    if (compat_set(&checked, o->compat, err) != OK)
        return err->code;
    buf_add(&settings, o->compat);
    r.window = o->window > 0 ? o->window : r.window;
    *ret = (struct llm_spec){ .base_url = url,
                              .model = model,
                              .dialect = dialect,
                              .key_env = or_null(a, o->key_env),
                              .key_file = or_null(a, o->key_file),
                              .ca_file = or_null(a, o->ca_file),
                              .proxy = or_null(a, o->proxy),
                              .settings = str_z(a, (struct str){ settings.ptr, settings.len }),
                              .in_flight_max = (int)o->in_flight };
    *ret_record = r;
    return OK;
}

bool endpoint_fallback(const struct endpoint_options *o, struct endpoint_options *ret)
{
    if (o->fallback.len == 0)
        return false;
    *ret = *o;
    ret->url = o->fallback;
    ret->model = o->fallback_model.len > 0 ? o->fallback_model : o->model;
    ret->dialect = o->fallback_dialect;
    ret->key_env = o->fallback_key_env;
    ret->key_file = o->fallback_key_file;
    ret->compat = ret->fallback = (struct str){ 0 };
    ret->window = 0;
    return true;
}

enum err_code endpoint_learnt(const struct llm_spec *spec, const struct endpoint_record *record,
                              const struct llm_endpoint *e, struct err *err)
{
    struct endpoint_record r = *record;
    struct compat end = llm_endpoint_compat(e), start = record->compat;
    if (compat_set(&start, str_from(spec->settings), err) != OK)
        return err->code;
    own_json was = compat_json(&start);
    own_json is = compat_json(&end);
    own_json learnt = json_object();
    const char *key;
    json_t *v;
    json_object_foreach(is, key, v) if (!json_equal(v, json_object_get(was, key)))
        json_object_set(learnt, key, v);
    if (json_object_size(learnt) == 0)
        return OK;
    if (compat_read(&r.compat, learnt, err) != OK)
        return err->code;
    return endpoint_record_write(spec->base_url, spec->model, &r, err);
}

double endpoint_cost(const struct endpoint_options *o, const struct reply_usage *u)
{
    double cached = o->price_cached < 0 ? o->price_input : o->price_cached;
    double fresh = (double)(u->input_total - u->input_cached);
    return (fresh * o->price_input + (double)u->input_cached * cached +
            (double)u->output_total * o->price_output) /
           1e6;
}
