#include "endpoint/answer.h"

#define BYTES_MAX ((size_t)256 << 20)
#define COMMENT_MS 50 /* between keep-alives while the first byte is awaited */

static void add(struct answer *ans, struct str s)
{
    ans->bytes.arena = ans->arena;
    ans->bytes.max = BYTES_MAX;
    buf_add(&ans->bytes, s);
}

/* All that was added since the last piece is one. */
static void piece_end(struct answer *ans, int64_t wait_ms)
{
    if (ans->n_pieces == ans->cap_pieces) {
        size_t cap = ans->cap_pieces ? ans->cap_pieces * 2 : 64;
        struct piece *more = arena_new(ans->arena, struct piece, cap);
        if (ans->n_pieces > 0)
            memcpy(more, ans->pieces, ans->n_pieces * sizeof *more);
        ans->pieces = more;
        ans->cap_pieces = cap;
    }
    ans->pieces[ans->n_pieces++] = (struct piece){ ans->bytes.len, wait_ms };
}

static void head_add(struct answer *ans, int status, const char *type, const char *more)
{
    static const struct {
        int status;
        const char *words;
    } rows[] = { { 200, "OK" },
                 { 400, "Bad Request" },
                 { 401, "Unauthorized" },
                 { 404, "Not Found" },
                 { 405, "Method Not Allowed" },
                 { 411, "Length Required" },
                 { 429, "Too Many Requests" },
                 { 500, "Internal Server Error" },
                 { 503, "Service Unavailable" },
                 { 529, "Overloaded" } };
    const char *words = "Status";
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].status == status)
            words = rows[i].words;
    add(ans, str_from(arena_fmt(ans->arena, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s", status,
                                words, type, more ? more : "")));
}

static void body_add(struct answer *ans, int status, const char *type, const char *headers,
                     struct str body)
{
    head_add(ans, status, type, headers);
    add(ans, str_from(arena_fmt(ans->arena, "Content-Length: %zu\r\n\r\n", body.len)));
    add(ans, body);
    piece_end(ans, 0);
}

void answer_json(struct answer *ans, int status, const char *headers, json_t *body)
{
    own_json mine = body;
    own_mem char *z = json_dumps(mine, JSON_COMPACT);
    body_add(ans, status, "application/json", headers, str_from(z ? z : "{}"));
}

void answer_text(struct answer *ans, int status, const char *type, struct str body)
{
    body_add(ans, status, type, NULL, body);
}

/* ---- streams ---- */

void answer_begin_stream(struct answer *ans, const struct telling *tell)
{
    int64_t left = tell->turn->delay_ms;
    const char *comment = tell->disguise->comment;
    ans->chunked = true;
    ans->pace_ms = tell->turn->pace_ms;
    head_add(ans, 200, "text/event-stream; charset=utf-8",
             "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n");
    if (comment == NULL || left <= 0) {
        piece_end(ans, left); /* the head waits, too: the server is silent */
        return;
    }
    piece_end(ans, 0);
    for (; left > 0; left -= COMMENT_MS) {
        add(ans, str_from(arena_fmt(ans->arena, "%zx\r\n%s\r\n", strlen(comment), comment)));
        piece_end(ans, left < COMMENT_MS ? left : COMMENT_MS);
    }
}

void answer_raw(struct answer *ans, struct str event)
{
    if (ans->events_max >= 0 && ans->n_events >= ans->events_max)
        return;
    add(ans, str_from(arena_fmt(ans->arena, "%zx\r\n", event.len)));
    add(ans, event);
    add(ans, S("\r\n"));
    piece_end(ans, ans->n_events > 0 ? ans->pace_ms : 0);
    ans->n_events++;
}

void answer_event(struct answer *ans, const char *name, json_t *data)
{
    own_json mine = data;
    own_mem char *z = json_dumps(mine, JSON_COMPACT);
    const char *head = name ? arena_fmt(ans->arena, "event: %s\n", name) : "";
    answer_raw(ans, str_from(arena_fmt(ans->arena, "%sdata: %s\n\n", head, z ? z : "{}")));
}

/* Smaller runs of bytes, with the pace between them. */
static void pieces_cut(struct answer *ans, size_t run)
{
    struct piece *old = ans->pieces;
    size_t n = ans->n_pieces, from = 0;
    ans->pieces = NULL;
    ans->n_pieces = ans->cap_pieces = 0;
    struct buf whole = ans->bytes;
    for (size_t i = 0; i < n; i++) {
        for (size_t end = from; end < old[i].end;) {
            bool first = end == from;
            end = end + run < old[i].end ? end + run : old[i].end;
            ans->bytes.len = end;
            piece_end(ans, first ? old[i].wait_ms : ans->pace_ms);
        }
        from = old[i].end;
    }
    ans->bytes = whole;
}

static const char *retry_header(struct arena *a, const struct trouble *t)
{
    return t->retry_after ? arena_fmt(a, "Retry-After: %s\r\n", t->retry_after) : NULL;
}

static bool trouble_first(struct answer *ans, const struct telling *tell, const struct trouble *t)
{
    static const int statuses[] = {
#define X(id, name, status) [id] = status,
        TROUBLES(X)
#undef X
    };
    if (t == NULL)
        return false;
    if (t->kind == TROUBLE_GARBAGE) {
        answer_text(ans, 200, "text/html", S("<html><body>Bad gateway to heaven</body></html>\n"));
        return true;
    }
    if (statuses[t->kind] == 0)
        return false;
    struct refusal r =
        disguise_trouble(ans->arena, tell->disguise, tell->script, tell->talk, t->kind);
    answer_json(ans, r.status, retry_header(ans->arena, t), disguise_error(tell->disguise, &r));
    return true;
}

static void trouble_last(struct answer *ans, const struct telling *tell, const struct trouble *t)
{
    ans->events_max = -1;
    if (t->kind == TROUBLE_ERROR) {
        struct refusal r =
            disguise_trouble(ans->arena, tell->disguise, tell->script, tell->talk, TROUBLE_ERROR);
        answer_event(ans, tell->disguise->anthropic ? "error" : NULL,
                     disguise_error(tell->disguise, &r));
    }
    ans->farewell = t->kind == TROUBLE_RESET  ? FAREWELL_RESET
                    : t->kind == TROUBLE_HANG ? FAREWELL_HANG
                    : t->kind == TROUBLE_CUT  ? FAREWELL_CLOSE
                                              : FAREWELL_KEEP;
}

void answer_turn(struct answer *ans, const struct telling *tell, const struct trouble *trouble)
{
    bool streamed = tell->talk->stream && tell->talk->api != API_TOKENS;
    ans->events_max = -1;
    if (trouble_first(ans, tell, trouble))
        return;
    if (!streamed) {
        json_t *whole = tell->talk->api == API_TOKENS      ? tokens_whole(ans->arena, tell)
                        : tell->talk->api == API_ANTHROPIC ? anthropic_whole(ans->arena, tell)
                                                           : openai_whole(ans->arena, tell);
        answer_json(ans, 200, NULL, whole);
        ans->pieces[0].wait_ms = tell->turn->delay_ms;
        if (trouble != NULL) { /* half a body */
            ans->pieces[0].end -= ans->bytes.len / 3;
            trouble_last(ans, tell, &(struct trouble){ .kind = TROUBLE_CUT });
        }
    } else {
        ans->events_max = trouble ? trouble->after : -1;
        answer_begin_stream(ans, tell);
        if (tell->talk->api == API_ANTHROPIC)
            anthropic_tell(ans, tell);
        else
            openai_tell(ans, tell);
        if (trouble != NULL)
            trouble_last(ans, tell, trouble);
        if (ans->farewell == FAREWELL_KEEP) {
            add(ans, S("0\r\n\r\n"));
            piece_end(ans, 0);
        }
    }
    if (tell->turn->cut_bytes > 0)
        pieces_cut(ans, (size_t)tell->turn->cut_bytes);
}

/* ---- what the writers share ---- */

static bool inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

bool piece_take(enum pieces how, struct str *rest, struct str *ret)
{
    size_t n = rest->len;
    if (n == 0)
        return false;
    if (how == PIECES_TOKENS) {
        (void)token_take(*rest, &n);
        while (n < rest->len && inside(rest->ptr[n]))
            n++;
    } else if (how == PIECES_WORDS) {
        n = 1;
        while (n < rest->len && rest->ptr[n - 1] != ' ' && rest->ptr[n - 1] != '\n')
            n++;
    }
    *ret = (struct str){ rest->ptr, n };
    *rest = str_drop(*rest, n);
    return true;
}

const char *tell_call_id(struct arena *a, const struct telling *tell, size_t n)
{
    return id_make(a, &tell->disguise->ids, (size_t)(tell->turn - tell->script->turns), tell->place,
                   n);
}

struct str tell_args(const struct telling *tell, size_t n)
{
    return n + 1 == tell->n_calls ? tell->last_args : tell->turn->calls[n].args;
}
