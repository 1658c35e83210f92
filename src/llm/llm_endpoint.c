/* One address: where to, with which key, under which limits. */
#include <ctype.h>
#include <stdlib.h>

#include "core/own.h"
#include "llm/llm_int.h"
#include "llm/wire.h"
#include "sys/file.h"

#define KEY_MAX 8192

/* ---- the key ---- */

static enum err_code key_keep(struct llm_endpoint *e, struct str key, const char *from,
                              struct err *err)
{
    key = str_trim(key);
    if (key.len == 0 || key.len > KEY_MAX)
        return err_raise(err, ERR_CONFIG, "%s holds no key", from);
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.ptr[i] <= ' ' || (unsigned char)key.ptr[i] >= 0x7f)
            return err_raise(err, ERR_CONFIG, "%s: a key has no blanks or control characters",
                             from);
    e->key = strndup(key.ptr, key.len);
    return e->key ? OK : err_sys(err, "no memory for a key");
}

static enum err_code key_read(struct llm_endpoint *e, struct err *err)
{
    const struct llm_spec *s = &e->spec;
    own_arena tmp = { 0 };
    struct str text;
    if (s->key_env != NULL) {
        const char *value = getenv(s->key_env);
        if (value == NULL) {
            err_raise(err, ERR_CONFIG, "the variable %s is not set", s->key_env);
            return err_hint(err, "export %s=KEY, or name a file that holds the key", s->key_env);
        }
        return key_keep(e, str_from(value), s->key_env, err);
    }
    if (s->key_file == NULL)
        return OK;
    if (file_read(&tmp, s->key_file, KEY_MAX, &text, err) != OK)
        return err->code;
    enum err_code code = key_keep(e, text, s->key_file, err);
    explicit_bzero((char *)text.ptr, text.len);
    return code;
}

static enum err_code header_add(struct llm_endpoint *e, const char *line, struct err *err)
{
    struct curl_slist *more = curl_slist_append(e->headers, line);
    if (more == NULL)
        return err_sys(err, "no memory for a header");
    e->headers = more;
    return OK;
}

static enum err_code headers_make(struct llm_endpoint *e, struct err *err)
{
    own_arena tmp = { 0 };
    const char *const *more = e->spec.headers;
    if (header_add(e, "Content-Type: application/json", err) != OK ||
        header_add(e, "Expect:", err) != OK || /* no waiting for 100 Continue */
        header_add(e, "User-Agent: cuda-agent/" CA_VERSION_TEXT, err) != OK)
        return err->code;
    if (e->spec.dialect == DIALECT_ANTHROPIC &&
        header_add(e, "anthropic-version: 2023-06-01", err) != OK)
        return err->code;
    if (e->key != NULL) {
        const char *name =
            e->spec.dialect == DIALECT_ANTHROPIC ? "x-api-key: " : "Authorization: Bearer ";
        char *line = (char *)arena_fmt(&tmp, "%s%s", name, e->key);
        enum err_code code = header_add(e, line, err);
        explicit_bzero(line, strlen(line));
        if (code != OK)
            return code;
    }
    for (; more != NULL && *more != NULL; more++) {
        if (strpbrk(*more, "\r\n") != NULL || strchr(*more, ':') == NULL)
            return err_raise(err, ERR_CONFIG, "a header wants the form 'Name: value'");
        if (header_add(e, *more, err) != OK)
            return err->code;
    }
    return OK;
}

struct str endpoint_scrub(const struct llm_endpoint *e, struct arena *a, struct str s)
{
    size_t n = e->key ? strlen(e->key) : 0;
    const char *at = n > 0 && s.len > 0 ? memmem(s.ptr, s.len, e->key, n) : NULL;
    struct buf out = { .arena = a, .max = s.len * 8 + 64 };
    if (at == NULL)
        return s;
    for (; at != NULL; at = s.len > 0 ? memmem(s.ptr, s.len, e->key, n) : NULL) {
        size_t before = (size_t)(at - s.ptr);
        buf_add(&out, (struct str){ s.ptr, before });
        buf_addz(&out, "[key]");
        s = str_drop(s, before + n);
    }
    buf_add(&out, s);
    return (struct str){ out.ptr, out.len };
}

/* ---- the address ---- */

static enum err_code url_check(const char *url, struct err *err)
{
    CURLU *u = curl_url();
    char *scheme = NULL, *user = NULL, *query = NULL;
    bool good = u != NULL && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
                curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK;
    bool http = good && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    bool secret = good && curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK;
    bool more = good && curl_url_get(u, CURLUPART_QUERY, &query, 0) == CURLUE_OK;
    curl_free(scheme);
    curl_free(user);
    curl_free(query);
    curl_url_cleanup(u);
    if (secret) /* the text is not quoted: it holds a password */
        return err_raise(err, ERR_CONFIG, "an address with a name or password in it");
    if (!http || more)
        return err_raise(err, ERR_CONFIG, "'%s' is not an address: wanted http(s)://HOST[:PORT]",
                         url);
    return OK;
}

static enum err_code urls_make(struct llm_endpoint *e, struct err *err)
{
    struct str base = str_from(e->spec.base_url);
    if (base.len == 0)
        return err_raise(err, ERR_CONFIG, "an endpoint without an address");
    if (url_check(e->spec.base_url, err) != OK)
        return err->code;
    while (base.len > 0 && base.ptr[base.len - 1] == '/')
        base.len--;
    if (str_ends(base, S("/v1")))
        base.len -= 3;
    e->root = str_z(&e->arena, base);
    e->chat_url =
        arena_fmt(&e->arena, "%.*s%s", STR_FMT(base),
                  e->spec.dialect == DIALECT_ANTHROPIC ? "/v1/messages" : "/v1/chat/completions");
    e->generate_url =
        arena_fmt(&e->arena, "%.*s%s", STR_FMT(base),
                  e->spec.generate_api == GENERATE_VLLM ? "/v1/completions" : "/generate");
    return OK;
}

/* ---- */

static const char *kept(struct arena *a, const char *z)
{
    return z ? str_z(a, str_from(z)) : NULL;
}

static void or_default(int64_t *ms, int64_t value)
{
    if (*ms <= 0)
        *ms = value;
}

static void spec_keep(struct llm_endpoint *e, const struct llm_spec *spec)
{
    struct llm_spec *s = &e->spec;
    struct llm_times *t = &s->times;
    *s = *spec;
    s->base_url = kept(&e->arena, s->base_url);
    s->model = kept(&e->arena, s->model ? s->model : "");
    s->key_env = kept(&e->arena, s->key_env);
    s->key_file = kept(&e->arena, s->key_file);
    s->proxy = kept(&e->arena, s->proxy);
    s->ca_file = kept(&e->arena, s->ca_file);
    s->in_flight_max = s->in_flight_max > 0 ? s->in_flight_max : 8;
    s->tries_max = s->tries_max > 0 ? s->tries_max : 8;
    s->answer_max = s->answer_max > 0 ? s->answer_max : ASSEMBLY_BYTES_MAX;
    or_default(&t->connect_ms, 10000);
    or_default(&t->first_byte_ms, 60000);
    or_default(&t->idle_ms, 120000);
    or_default(&t->token_ms, 100);
    or_default(&t->error_body_ms, 5000);
    or_default(&t->total_ms, 3600000);
    or_default(&t->backoff_ms, 1000);
    or_default(&t->backoff_max_ms, 60000);
    or_default(&t->wait_max_ms, 300000);
}

void endpoint_free(struct llm_endpoint *e)
{
    if (e == NULL)
        return;
    for (struct curl_slist *h = e->headers; h != NULL; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(e->headers);
    if (e->key != NULL)
        explicit_bzero(e->key, strlen(e->key));
    free(e->key);
    arena_fini(&e->arena);
    free(e);
}

static enum err_code endpoint_fill(struct llm_endpoint *e, const struct llm_spec *spec,
                                   struct err *err)
{
    spec_keep(e, spec);
    e->compat = compat_for(spec->dialect, str_from(spec->base_url), str_from(spec->model));
    if (urls_make(e, err) != OK || compat_set(&e->compat, str_from(spec->settings), err) != OK ||
        key_read(e, err) != OK)
        return err->code;
    enum err_code code = headers_make(e, err);
    e->spec.headers = NULL; /* copied above */
    e->spec.settings = NULL;
    return code;
}

enum err_code llm_endpoint_add(struct llm *l, const struct llm_spec *spec,
                               struct llm_endpoint **ret, struct err *err)
{
    struct llm_endpoint *e = calloc(1, sizeof *e);
    if (e == NULL)
        return err_sys(err, "no memory for an endpoint");
    e->loop = l;
    if (endpoint_fill(e, spec, err) != OK) {
        endpoint_free(e);
        return err_within(err, "endpoint");
    }
    e->next = l->endpoints;
    l->endpoints = e;
    *ret = e;
    return OK;
}

struct compat llm_endpoint_compat(const struct llm_endpoint *e)
{
    return e->compat;
}
