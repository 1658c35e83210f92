/* One try of a call: the request, the bytes that come, what they amount to. */
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "core/own.h"
#include "llm/dump.h"
#include "llm/llm_int.h"
#include "llm/request.h"
#include "llm/wire.h"
#include "sys/clock.h"

#define TOKEN_BYTES 3.2   /* of source code, about */
#define PROMPT_TOKEN_MS 2 /* 500 tokens a second: a slow local prefill */
#define ERROR_BODY_MAX ((size_t)1 << 20)
#define HEADER_MAX 1024
#define LINGER_MS \
    1000 /* for the end of a whole answer's connection, so that it can be used again */
#define ESCALATIONS_MAX 4 /* doublings of the first byte's time */

static bool is_good(int status)
{
    return status >= 200 && status < 300;
}

/* ---- bytes ---- */

static void chat_take(struct llm_call *c, struct str bytes)
{
    if (c->assembly == NULL) {
        const struct chat *chat = c->ask.chat;
        struct assembly_spec spec = { .dialect = c->endpoint->spec.dialect,
                                      .streamed = c->asked_stream,
                                      .name_fragments = c->compat.name_fragments,
                                      .think_open = c->compat.think_open,
                                      .id_seed = c->id_seed,
                                      .bytes_max = c->endpoint->spec.answer_max,
                                      .prompt_bytes = c->request_len,
                                      .tools = chat->tools,
                                      .n_tools = chat->n_tools };
        c->assembly = assembly_create(&c->try_arena, &spec);
    }
    if (assembly_feed(c->assembly, bytes))
        return;
    if (assembly_done(c->assembly))
        c->enough_ms = c->byte_ms;
    else
        c->overfull = true;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *call)
{
    struct llm_call *c = call;
    struct str s = { bytes, size * n };
    c->byte_ms = clock_ms();
    if (c->first_ms == 0)
        c->first_ms = c->byte_ms;
    if (is_good(c->status) && c->ask.chat != NULL) {
        if (c->enough_ms == 0 && !c->overfull)
            chat_take(c, s);
    } else {
        buf_add(&c->body, s);
        c->overfull = c->body.full;
    }
    return c->overfull ? 0 : s.len; /* 0 breaks the transfer off */
}

static void status_take(struct llm_call *c, struct str line)
{
    struct str rest = line, code;
    struct err err;
    int64_t status;
    str_cut(&rest, ' ', &code);
    rest = str_trim(rest);
    if (str_int((struct str){ rest.ptr, rest.len < 3 ? rest.len : 3 }, 100, 999, &status, &err) !=
        OK)
        return;
    c->status = (int)status;
    c->status_ms = clock_ms();
    c->headers = (struct answer_headers){ 0 }; /* those before were of an interim answer */
}

static size_t on_header(char *bytes, size_t size, size_t n, void *call)
{
    struct llm_call *c = call;
    struct str line = { bytes, size * n }, name, value = line;
    const struct {
        const char *name;
        struct str *to;
    } rows[] = { { "retry-after", &c->headers.retry_after },
                 { "retry-after-ms", &c->headers.retry_after_ms },
                 { "x-ratelimit-reset-requests", &c->headers.reset },
                 { "x-ratelimit-reset-tokens", &c->headers.reset },
                 { "location", &c->headers.location } };
    if (str_starts(line, S("HTTP/"))) {
        status_take(c, line);
        return line.len;
    }
    if (!str_cut(&value, ':', &name) || value.len > HEADER_MAX)
        return line.len;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (wire_same(name, rows[i].name) && rows[i].to->len == 0)
            *rows[i].to = str_copy(&c->try_arena, str_trim(value));
    return line.len;
}

/* ---- the request ---- */

static enum err_code request_make(struct llm_call *c, struct err *err)
{
    const struct llm_endpoint *e = c->endpoint;
    own_json j = NULL;
    if (c->ask.path != NULL)
        return OK;
    if (c->ask.generate != NULL) {
        j = generate_write(e->spec.generate_api, e->spec.model, c->ask.generate);
        c->prompt_tokens = c->ask.generate->n_prompt;
    } else {
        struct chat_sampling sampling = *c->ask.sampling;
        if (c->max_tokens > 0)
            sampling.max_tokens = c->max_tokens;
        struct request r = { .dialect = e->spec.dialect,
                             .model = e->spec.model,
                             .compat = &c->compat,
                             .chat = c->ask.chat,
                             .sampling = &sampling,
                             .unstreamed = c->unstreamed };
        if (request_write(&r, &j, err) != OK)
            return err->code;
        c->asked_stream = c->compat.stream && !c->unstreamed;
    }
    c->request = json_bytes(j);
    if (c->request == NULL)
        return err_raise(err, ERR_FORMAT, "the request is not JSON");
    c->request_len = strlen(c->request);
    if (c->ask.chat != NULL)
        c->prompt_tokens = (size_t)((double)c->request_len / TOKEN_BYTES);
    return OK;
}

static const char *url_of(struct llm_call *c)
{
    const struct llm_endpoint *e = c->endpoint;
    if (c->ask.path != NULL)
        return arena_fmt(&c->try_arena, "%s%s", e->root, c->ask.path);
    return c->ask.generate ? e->generate_url : e->chat_url;
}

static bool options_set(struct llm_call *c)
{
    const struct llm_endpoint *e = c->endpoint;
    CURL *h = c->easy;
    bool ok = curl_easy_setopt(h, CURLOPT_URL, url_of(c)) == CURLE_OK;
    if (c->request != NULL) {
        ok = curl_easy_setopt(h, CURLOPT_POSTFIELDS, c->request) == CURLE_OK && ok;
        ok = curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->request_len) ==
                 CURLE_OK &&
             ok;
    }
    ok = curl_easy_setopt(h, CURLOPT_HTTPHEADER, e->headers) == CURLE_OK && ok;
    ok = curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK && ok;
    ok = curl_easy_setopt(h, CURLOPT_WRITEDATA, c) == CURLE_OK && ok;
    ok = curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK && ok;
    ok = curl_easy_setopt(h, CURLOPT_HEADERDATA, c) == CURLE_OK && ok;
    ok = curl_easy_setopt(h, CURLOPT_PRIVATE, c) == CURLE_OK && ok;
    ok = curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)e->spec.times.connect_ms) ==
             CURLE_OK &&
         ok;
    /* Nobody but the endpoint: no redirects, no proxy but the one named ("" keeps the environment's
     * out); the address is http or https, llm_endpoint_add saw to it. Certificates are checked by
     * default; said again, since all hangs on it. NOSIGNAL stays off, so that libcurl keeps SIGPIPE
     * away. */
    ok = curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK && ok;
    ok = curl_easy_setopt(h, CURLOPT_PROXY, e->spec.proxy ? e->spec.proxy : "") == CURLE_OK && ok;
    ok = curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK && ok;
    ok = curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK && ok;
    if (e->spec.ca_file != NULL)
        ok = curl_easy_setopt(h, CURLOPT_CAINFO, e->spec.ca_file) == CURLE_OK && ok;
    return curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK && ok;
}

enum err_code try_begin(struct llm_call *c, struct err *err)
{
    try_drop(c);
    bool tokens = c->ask.generate != NULL || c->ask.path != NULL;
    c->compat = c->endpoint->compat;
    c->body = (struct buf){ .arena = &c->try_arena,
                            .max = tokens ? c->endpoint->spec.answer_max : ERROR_BODY_MAX };
    if (request_make(c, err) != OK)
        return err->code;
    c->easy = curl_easy_init();
    if (c->easy == NULL || !options_set(c))
        return err_raise(err, ERR_SYSTEM, "libcurl takes no request");
    c->sent_ms = clock_ms();
    CURLMcode code = curl_multi_add_handle(c->loop->multi, c->easy);
    if (code != CURLM_OK)
        return err_raise(err, ERR_SYSTEM, "libcurl: %s", curl_multi_strerror(code));
    return OK;
}

void try_drop(struct llm_call *c)
{
    if (c->easy != NULL) {
        curl_multi_remove_handle(c->loop->multi, c->easy);
        curl_easy_cleanup(c->easy);
    }
    c->easy = NULL;
    free(c->request);
    c->request = NULL;
    c->assembly = NULL;
    c->headers = (struct answer_headers){ 0 };
    c->status = 0;
    c->sent_ms = c->status_ms = c->first_ms = c->byte_ms = c->enough_ms = 0;
    c->overfull = c->asked_stream = false;
    arena_fini(&c->try_arena);
}

/* ---- time ---- */

static int64_t first_byte_ms(const struct llm_call *c)
{
    const struct llm_times *t = &c->endpoint->spec.times;
    int64_t ms = t->first_byte_ms + PROMPT_TOKEN_MS * (int64_t)c->prompt_tokens;
    int doublings =
        c->outcome.n_tries - 1 < ESCALATIONS_MAX ? c->outcome.n_tries - 1 : ESCALATIONS_MAX;
    int64_t asked = c->ask.generate   ? c->ask.generate->max_tokens
                    : c->ask.sampling ? c->ask.sampling->max_tokens
                                      : 0;
    if (!c->asked_stream && asked > 0 && asked < INT32_MAX)
        ms += t->token_ms * asked;
    return ms << (doublings > 0 ? doublings : 0);
}

int64_t try_deadline(const struct llm_call *c)
{
    const struct llm_times *t = &c->endpoint->spec.times;
    int64_t at = c->byte_ms + t->idle_ms, last = c->sent_ms + t->total_ms;
    if (c->enough_ms > 0)
        at = c->enough_ms + LINGER_MS;
    else if (c->status >= 300)
        at = c->status_ms + t->error_body_ms;
    else if (c->first_ms == 0)
        at = c->sent_ms + t->connect_ms + first_byte_ms(c);
    return at < last ? at : last;
}

const char *try_late(const struct llm_call *c)
{
    if (c->enough_ms > 0 || c->status >= 300)
        return NULL;
    return c->first_ms == 0 ? "no first byte in time" : "no byte for too long";
}

/* ---- what it amounts to ---- */

/* Only the host: what stands behind it is nobody's business. */
static struct str host_of(struct arena *a, struct str url)
{
    CURLU *u = curl_url();
    char *host = NULL;
    struct str s = S("elsewhere");
    if (u != NULL && curl_url_set(u, CURLUPART_URL, str_z(a, url), 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK)
        s = str_copy(a, str_from(host));
    curl_free(host);
    curl_url_cleanup(u);
    return s;
}

static struct fault fault_of_status(struct llm_call *c)
{
    struct fault_http h = { .status = c->status,
                            .body = { c->body.ptr, c->body.len },
                            .retry_after = c->headers.retry_after,
                            .retry_after_ms = c->headers.retry_after_ms,
                            .reset = c->headers.reset,
                            .now_s = clock_utc_us() / 1000000 };
    struct fault f = fault_from_http(&c->try_arena, &h);
    if (c->status < 400) {
        f = fault_ours(&c->try_arena, FAULT_REDIRECT,
                       "the endpoint sends us to %.*s; redirects are not followed",
                       STR_FMT(host_of(&c->try_arena, c->headers.location)));
        f.status = c->status;
    }
    return f;
}

static struct fault fault_of_curl(struct llm_call *c, CURLcode code)
{
    enum fault_kind kind = FAULT_TRANSPORT;
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
        code == CURLE_SSL_ISSUER_ERROR)
        kind = FAULT_TLS;
    return fault_ours(&c->try_arena, kind, "%s", curl_easy_strerror(code));
}

/* A person has to mend it: say where. */
static void auth_explain(struct llm_call *c)
{
    const struct llm_spec *s = &c->endpoint->spec;
    struct fault *f = &c->outcome.fault;
    const char *where = s->key_env ? s->key_env : s->key_file ? s->key_file : "none was configured";
    f->message = str_from(arena_fmt(&c->try_arena, "%.*s (key: %s)", STR_FMT(f->message), where));
}

static void chat_end(struct llm_call *c, CURLcode code, const char *late)
{
    struct llm_outcome *o = &c->outcome;
    if (c->assembly == NULL) {
        o->fault = late               ? fault_ours(&c->try_arena, FAULT_TIMEOUT, "%s", late)
                   : code != CURLE_OK ? fault_of_curl(c, code)
                                      : fault_ours(&c->try_arena, FAULT_CUT, "an empty answer");
        return;
    }
    assembly_end(c->assembly, &o->reply);
    o->fault = o->reply.fault;
    /* A break after the reason to stop costs nothing; before it, the connection's words say more.
     */
    if (o->fault.kind == FAULT_CUT && late != NULL)
        o->fault = fault_ours(&c->try_arena, FAULT_TIMEOUT, "%s", late);
    else if (o->fault.kind == FAULT_CUT && code != CURLE_OK)
        o->fault = fault_ours(&c->try_arena, FAULT_CUT, "the answer was cut: %s",
                              curl_easy_strerror(code));
}

/* Tokens, or the body of a GET. */
static void body_end(struct llm_call *c, CURLcode code, const char *late)
{
    struct llm_outcome *o = &c->outcome;
    struct err err = { 0 };
    struct str body = { c->body.ptr, c->body.len };
    bool mended = false;
    if (late != NULL) {
        o->fault = fault_ours(&c->try_arena, FAULT_TIMEOUT, "%s", late);
    } else if (c->overfull) {
        o->fault =
            fault_ours(&c->try_arena, FAULT_LIMIT, "an answer of more than %zu bytes", c->body.max);
    } else if (code != CURLE_OK) {
        o->fault = fault_of_curl(c, code);
    } else if (c->ask.path != NULL) {
        o->body = body;
    } else if (generate_read(&c->try_arena, c->endpoint->spec.generate_api, c->ask.generate, body,
                             &o->generated, &err) != OK) {
        own_json j = wire_json(body, &mended);
        o->fault = json_object_get(j, "error")
                       ? fault_from_json(&c->try_arena, j, c->status)
                       : fault_ours(&c->try_arena, FAULT_GARBAGE, "%s", err.text);
    }
}

void try_end(struct llm_call *c, CURLcode code, const char *late)
{
    struct llm_outcome *o = &c->outcome;
    long connects = 1;
    o->fault = (struct fault){ 0 };
    o->reply = (struct reply){ .end = REPLY_FAILED };
    o->generated = (struct generated){ 0 };
    o->body = (struct str){ 0 };
    o->reused = curl_easy_getinfo(c->easy, CURLINFO_NUM_CONNECTS, &connects) == CURLE_OK &&
                connects == 0 && c->status > 0;
    o->first_byte_ms = c->first_ms > 0 ? c->first_ms - c->sent_ms : -1;
    if (c->status >= 300)
        o->fault = fault_of_status(c);
    else if (c->ask.chat != NULL)
        chat_end(c, code, late);
    else
        body_end(c, code, late);
    if (o->fault.n_window > 0)
        o->n_window = o->fault.n_window;
    if (o->fault.kind == FAULT_AUTH)
        auth_explain(c);
    o->fault.message = endpoint_scrub(c->endpoint, &c->try_arena, o->fault.message);
    o->fault.param = endpoint_scrub(c->endpoint, &c->try_arena, o->fault.param);
    o->reply.fault = o->fault;
    if (o->fault.kind == FAULT_REFUSED) {
        o->reply.end = REPLY_REFUSED;
        o->reply.refused_by = REFUSED_BY_FILTER;
    }
}
