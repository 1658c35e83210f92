#include "app/doctor_endpoint.h"

#include <stdio.h>

#include "core/own.h"
#include "llm/probe.h"
#include "llm/wire.h"
#include "sys/stop.h"

#define STEP_MS 200
#define TRIES_MAX 3 /* a person waits */

struct visit {
    const struct doctor_endpoint *d;
    struct arena *arena;
    struct llm *llm;
    struct llm_spec spec;
    struct llm_endpoint *endpoint;
    struct probing p;
    bool dialect_sure, anonymous; /* the model was not named */
    bool reached;
    bool progress; /* somebody watches */
};

static void llm_drop(struct llm **l)
{
    llm_close(*l);
}

/* One call, to its end. The caller frees it. */
static enum err_code call(struct visit *v, const struct llm_ask *ask, struct llm_call **ret,
                          struct err *err)
{
    struct llm_call *c = NULL, *ended = NULL;
    if (llm_start(v->llm, ask, &c, err) != OK)
        return err->code;
    while (ended == NULL) {
        if (stop_asked())
            llm_cancel(c);
        if (llm_step(v->llm, STEP_MS, &ended, err) != OK)
            return err->code;
    }
    *ret = ended;
    if (stop_check(err) != OK) {
        llm_call_free(ended);
        return err->code;
    }
    return OK;
}

static enum err_code knock(struct visit *v, struct err *err)
{
    v->spec.dialect = v->p.dialect;
    v->spec.model = v->p.model;
    return llm_endpoint_add(v->llm, &v->spec, &v->endpoint, err);
}

/* ---- models ---- */

static void other_dialect(struct visit *v)
{
    v->p.dialect = v->p.dialect == DIALECT_OPENAI ? DIALECT_ANTHROPIC : DIALECT_OPENAI;
}

static void reach_row(struct visit *v, const struct llm_outcome *o)
{
    v->reached = o->fault.status > 0 || o->fault.kind == FAULT_NONE;
    const struct fault *f = &o->fault;
    const char *why = f->kind == FAULT_TLS
                          ? "the certificate is not trusted: --ca-file FILE where it is your own"
                          : "is the server running, and is the address right?";
    v->p.rows[v->p.n_rows++] = (struct probe_row){
        .what = "reach",
        .good = v->reached,
        .needed = true,
        .found = v->reached
                     ? arena_fmt(v->arena, "%s in %lld ms", v->spec.base_url, (long long)o->wall_ms)
                     : arena_fmt(v->arena, "%s: %s: %.*s", v->spec.base_url, fault_name(f->kind),
                                 STR_FMT(f->message)),
        .mend = why,
    };
    v->p.usable = v->reached;
}

/* The list, in the dialect that it proves to be in where none was named. */
static enum err_code models(struct visit *v, struct err *err)
{
    for (int i = 0;; i++) {
        struct llm_call *c = NULL;
        bool other = false;
        if (knock(v, err) != OK ||
            call(v, &(struct llm_ask){ .endpoint = v->endpoint, .path = "/v1/models" }, &c, err) !=
                OK)
            return err->code;
        const struct llm_outcome *o = llm_call_outcome(c);
        struct probing kept = v->p;
        v->p.n_rows = 0;
        reach_row(v, o);
        if (v->reached)
            probe_models(&v->p, o, &other);
        bool locked = o->fault.kind == FAULT_AUTH; /* the other one's header may open it */
        llm_call_free(c);
        if (v->dialect_sure || i > 1 || !(other || (locked && i == 0)))
            return OK;
        if (locked && i == 0)
            v->dialect_sure = false;
        enum dialect d = v->p.dialect;
        v->p = kept;
        v->p.dialect = d;
        other_dialect(v);
    }
}

static enum err_code props(struct visit *v, struct err *err)
{
    struct llm_call *c = NULL;
    if (!probe_wants_props(&v->p))
        return OK;
    if (call(v, &(struct llm_ask){ .endpoint = v->endpoint, .path = "/props" }, &c, err) != OK)
        return err->code;
    probe_props(&v->p, llm_call_outcome(c));
    llm_call_free(c);
    return OK;
}

/* ---- probes ---- */

static enum err_code probe(struct visit *v, enum probe_id id, struct err *err)
{
    struct chat chat;
    struct chat_sampling sampling;
    probe_ask(&v->p, id, &chat, &sampling);
    for (bool again = true; again;) {
        struct llm_call *c = NULL;
        struct llm_ask ask = { .endpoint = v->endpoint,
                               .chat = &chat,
                               .sampling = &sampling,
                               .whole = probe_whole(&v->p, id) };
        if (v->progress)
            fprintf(stderr, "  asking (%d of %d)\r", (int)id + 1, (int)PROBES);
        if (call(v, &ask, &c, err) != OK)
            return err->code;
        again = probe_take(&v->p, id, llm_call_outcome(c));
        llm_call_free(c);
    }
    return OK;
}

static enum err_code probes(struct visit *v, struct err *err)
{
    for (int i = 0; i < PROBES; i++)
        if (probe_wanted(&v->p, (enum probe_id)i, v->d->thorough) &&
            probe(v, (enum probe_id)i, err) != OK)
            return err->code;
    return OK;
}

/* ---- what came of it ---- */

static enum err_code record_keep(struct visit *v, struct compat *ret, struct err *err)
{
    struct str learnt = { v->p.learnt.ptr, v->p.learnt.len };
    *ret = llm_endpoint_compat(v->endpoint);
    if (compat_set(ret, learnt, err) != OK)
        return err->code;
    struct endpoint_record r = { .model = v->p.model,
                                 .dialect = v->p.dialect,
                                 .compat = *ret,
                                 .window = v->p.window,
                                 .steps = v->p.steps,
                                 .n_steps = v->p.n_steps };
    if (!v->p.usable)
        return OK;
    if (v->anonymous && endpoint_record_write(v->spec.base_url, "", &r, err) != OK)
        return err->code;
    return endpoint_record_write(v->spec.base_url, v->p.model, &r, err);
}

/* What differs from an endpoint of which nothing is known. */
static void compat_print(const struct visit *v, const struct compat *c)
{
    struct compat plain = compat_for(v->p.dialect, (struct str){ 0 }, (struct str){ 0 });
    own_json was = compat_json(&plain);
    own_json is = compat_json(c);
    const char *key;
    json_t *val;
    bool any = false;
    json_object_foreach(is, key, val)
    {
        if (json_equal(val, json_object_get(was, key)))
            continue;
        printf("%s%s=%s", any ? " " : "compat     ", key,
               json_is_string(val) ? json_string_value(val)
               : json_is_true(val) ? "true"
                                   : "false");
        any = true;
    }
    printf("%s\n", any ? "" : "compat     all as it is without a word about it");
}

static void text_print(const struct visit *v, const struct compat *c)
{
    if (v->progress)
        fprintf(stderr, "%*s\r", 20, "");
    for (size_t i = 0; i < v->p.n_rows; i++) {
        const struct probe_row *r = &v->p.rows[i];
        printf("%-10s %-4s %s\n", r->what, r->good ? "ok" : r->needed ? "LACK" : "no", r->found);
        if (!r->good && r->mend != NULL && r->mend[0] != '\0')
            printf("%-15s mend: %s\n", "", r->mend);
    }
    for (size_t i = 0; i < v->p.n_steps; i++)
        printf("%-10s      %s\n", i == 0 ? "steps" : "", v->p.steps[i]);
    if (v->p.usable) {
        printf("dialect    %s\n", v->p.dialect == DIALECT_ANTHROPIC ? "anthropic" : "openai");
        compat_print(v, c);
    }
    printf("%s\n", v->p.usable ? "usable; later runs know this" : "not usable for an agent");
}

static enum err_code json_print(const struct visit *v, const struct compat *c, struct err *err)
{
    json_t *rows = json_array(), *steps = json_array();
    for (size_t i = 0; i < v->p.n_rows; i++) {
        const struct probe_row *r = &v->p.rows[i];
        json_array_append_new(rows, json_pack("{s:s, s:b, s:b, s:s, s:s}", "what", r->what, "good",
                                              r->good, "needed", r->needed, "found", r->found,
                                              "mend", !r->good && r->mend != NULL ? r->mend : ""));
    }
    for (size_t i = 0; i < v->p.n_steps; i++)
        json_array_append_new(steps, json_string(v->p.steps[i]));
    own_json all = json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:I, s:o, s:o, s:o}", "schema", "cuda-agent/doctor-endpoint/1",
        "url", v->spec.base_url, "model", v->p.model, "dialect",
        v->p.dialect == DIALECT_ANTHROPIC ? "anthropic" : "openai", "usable", v->p.usable, "window",
        (json_int_t)v->p.window, "rows", rows, "steps", steps, "compat", compat_json(c));
    own_mem char *text = all ? json_dumps(all, JSON_INDENT(1)) : NULL;
    if (text == NULL)
        return err_raise(err, ERR_FORMAT, "what the server said is not UTF-8");
    printf("%s\n", text);
    return OK;
}

/* ---- */

static enum err_code visit_begin(struct visit *v, struct err *err)
{
    const struct endpoint_options *o = v->d->options;
    enum dialect dialect = o->dialect == 2 || (o->dialect == 0 && wire_holds(o->url, "anthropic"))
                               ? DIALECT_ANTHROPIC
                               : DIALECT_OPENAI;
    if (o->key_env.len > 0 && o->key_file.len > 0)
        return err_raise(err, ERR_USAGE, "--key-env and --key-file: one of them");
    v->dialect_sure = o->dialect != 0;
    v->anonymous = o->model.len == 0;
    probing_init(&v->p, v->arena, dialect, o->model);
    v->p.window = o->window;
    /* Not what is kept: the server may be another one by now. */
    v->spec = (struct llm_spec){
        .base_url = str_z(v->arena, o->url),
        .key_env = o->key_env.len > 0 ? str_z(v->arena, o->key_env) : NULL,
        .key_file = o->key_file.len > 0 ? str_z(v->arena, o->key_file) : NULL,
        .ca_file = o->ca_file.len > 0 ? str_z(v->arena, o->ca_file) : NULL,
        .proxy = o->proxy.len > 0 ? str_z(v->arena, o->proxy) : NULL,
        .settings = str_z(v->arena, o->compat),
        .tries_max = TRIES_MAX,
        .times = { .backoff_max_ms = 2000, .wait_max_ms = 20000 },
    };
    return llm_open(&v->llm, err);
}

enum err_code doctor_endpoint(const struct doctor_endpoint *d, bool *ret_usable, struct err *err)
{
    own_arena a = { 0 };
    struct visit v = { .d = d, .arena = &a, .progress = !d->json && isatty(STDERR_FILENO) };
    struct compat compat;
    if (visit_begin(&v, err) != OK)
        return err->code;
    __attribute__((cleanup(llm_drop), unused)) struct llm *l = v.llm;
    if (models(&v, err) != OK)
        return err->code;
    if (v.p.usable && (knock(&v, err) != OK || props(&v, err) != OK || probes(&v, err) != OK))
        return err->code;
    if (record_keep(&v, &compat, err) != OK)
        return err->code;
    *ret_usable = v.p.usable;
    if (d->json)
        return json_print(&v, &compat, err);
    text_print(&v, &compat);
    return OK;
}
