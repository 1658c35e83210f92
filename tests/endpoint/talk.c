#include "endpoint/talk.h"

#include <stdio.h>

#define TEXT_MAX ((size_t)128 << 20)
#define TOKEN_BYTES 3

/* ---- reading ---- */

static struct str text_of(const json_t *v)
{
    return json_is_string(v) ? (struct str){ json_string_value(v), json_string_length(v) }
                             : (struct str){ 0 };
}

static struct str member(const json_t *o, const char *key)
{
    return text_of(json_object_get(o, key));
}

static bool is_on(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

/* A text, or the texts of a list of parts, joined. */
static struct str content_text(struct arena *a, const json_t *content)
{
    struct buf b = { .arena = a, .max = TEXT_MAX };
    const json_t *part;
    size_t i;
    if (!json_is_array(content))
        return text_of(content);
    json_array_foreach(content, i, part) buf_add(&b, member(part, "text"));
    return (struct str){ b.ptr, b.len };
}

static void said_openai(struct arena *a, const json_t *m, struct said *s)
{
    static const struct {
        const char *role;
        enum who who;
    } roles[] = { { "system", WHO_SYSTEM },
                  { "developer", WHO_SYSTEM },
                  { "user", WHO_USER },
                  { "assistant", WHO_MODEL },
                  { "tool", WHO_RESULT } };
    struct str role = member(m, "role");
    for (size_t i = 0; i < COUNT(roles); i++)
        if (str_eq(role, str_from(roles[i].role)))
            s->who = roles[i].who;
    s->text = content_text(a, json_object_get(m, "content"));
    s->calls = json_object_get(m, "tool_calls");
    s->id = s->who == WHO_RESULT ? member(m, "tool_call_id")
                                 : member(json_array_get(s->calls, 0), "id");
}

/* One message becomes its results, then what the user says. Returns how many. */
static size_t said_anthropic(struct arena *a, const json_t *m, struct said *s)
{
    bool model = str_eq(member(m, "role"), S("assistant"));
    const json_t *content = json_object_get(m, "content"), *block;
    struct buf b = { .arena = a, .max = TEXT_MAX };
    struct str first = { 0 };
    size_t n = 0, i;
    json_array_foreach(content, i, block)
    {
        struct str type = member(block, "type");
        if (str_eq(type, S("tool_result")))
            s[n++] = (struct said){ .who = WHO_RESULT,
                                    .text = content_text(a, json_object_get(block, "content")),
                                    .id = member(block, "tool_use_id") };
        else if (str_eq(type, S("tool_use")) && first.len == 0)
            first = member(block, "id");
        buf_add(&b, member(block, "text"));
    }
    struct str text = json_is_string(content) ? text_of(content) : (struct str){ b.ptr, b.len };
    if (model || text.len > 0)
        s[n++] = (struct said){ .who = model ? WHO_MODEL : WHO_USER, .text = text, .id = first };
    return n;
}

static void messages_read(struct arena *a, struct talk *t, const json_t *list)
{
    const json_t *system = json_object_get(t->body, "system"), *m;
    size_t room = 1, i;
    json_array_foreach(list, i, m) room += 1 + json_array_size(json_object_get(m, "content"));
    t->said = arena_new(a, struct said, room);
    if (t->api == API_ANTHROPIC && system != NULL)
        t->said[t->n_said++] = (struct said){ .who = WHO_SYSTEM, .text = content_text(a, system) };
    json_array_foreach(list, i, m)
    {
        if (t->api == API_ANTHROPIC)
            t->n_said += said_anthropic(a, m, &t->said[t->n_said]);
        else
            said_openai(a, m, &t->said[t->n_said++]);
    }
}

/* "user\ntext" between the two special tokens. */
static void said_rendered(struct talk *t, struct str part)
{
    static const struct {
        const char *role;
        enum who who;
    } roles[] = { { "system", WHO_SYSTEM },
                  { "user", WHO_USER },
                  { "assistant", WHO_MODEL },
                  { "tool", WHO_RESULT } };
    struct str role = { 0 }, rest = part;
    str_cut(&rest, '\n', &role);
    for (size_t i = 0; i < COUNT(roles); i++)
        if (str_eq(role, str_from(roles[i].role)))
            t->said[t->n_said++] = (struct said){ .who = roles[i].who, .text = rest };
}

static enum err_code ids_read(struct arena *a, struct talk *t, struct err *err)
{
    const json_t *list = json_object_get(t->body, "prompt"), *v;
    size_t n_starts = 1, i;
    t->n_ids = json_array_size(list);
    if (t->n_ids == 0)
        return err_raise(err, ERR_FORMAT, "prompt: wanted a list of token ids");
    t->ids = arena_new(a, int32_t, t->n_ids);
    json_array_foreach(list, i, v)
    {
        t->ids[i] = (int32_t)json_integer_value(v);
        n_starts += t->ids[i] == ID_START;
    }
    t->said = arena_new(a, struct said, n_starts);
    struct buf b = { .arena = a, .max = TEXT_MAX };
    for (i = 0; i < t->n_ids; i++) {
        if (t->ids[i] == ID_START) {
            b = (struct buf){ .arena = a, .max = TEXT_MAX };
        } else if (t->ids[i] == ID_END) {
            said_rendered(t, (struct str){ b.ptr, b.len });
        } else {
            buf_add(&b, token_text(a, t->ids[i]));
        }
    }
    t->n_prompt = (int64_t)t->n_ids;
    return OK;
}

static void prompt_count(struct talk *t)
{
    own_mem char *tools = json_dumps(json_object_get(t->body, "tools"), JSON_COMPACT);
    t->n_prompt = tokens_count(str_from(tools));
    for (size_t i = 0; i < t->n_said; i++) {
        own_mem char *calls = json_dumps(t->said[i].calls, JSON_COMPACT);
        t->n_prompt += 4 + tokens_count(t->said[i].text) + tokens_count(str_from(calls));
    }
}

enum err_code talk_read(struct arena *a, enum api api, const json_t *body, struct talk *ret,
                        struct err *err)
{
    const json_t *list = json_object_get(body, "messages");
    struct talk t = { .api = api, .body = body, .model = member(body, "model") };
    int64_t max = json_integer_value(json_object_get(body, "max_completion_tokens"));
    t.max_tokens = max > 0 ? max : json_integer_value(json_object_get(body, "max_tokens"));
    t.stream = is_on(body, "stream");
    t.want_usage = is_on(json_object_get(body, "stream_options"), "include_usage");
    t.token_ids = is_on(body, "return_token_ids");
    t.logprobs = is_on(body, "logprobs") ||
                 (api == API_TOKENS && json_is_integer(json_object_get(body, "logprobs")));
    t.parallel = !json_is_false(json_object_get(body, "parallel_tool_calls"));
    t.n_tools = json_array_size(json_object_get(body, "tools"));
    t.thinking = json_object_get(body, "thinking") != NULL;
    if (api == API_TOKENS) {
        if (ids_read(a, &t, err) != OK)
            return err->code;
    } else if (!json_is_array(list) || json_array_size(list) == 0) {
        return err_raise(err, ERR_FORMAT, "messages: wanted a list that is not empty");
    } else {
        messages_read(a, &t, list);
        prompt_count(&t);
    }
    *ret = t;
    return OK;
}

/* ---- what a history must be ---- */

static bool has_result(const struct talk *t, size_t from, struct str id)
{
    for (size_t i = from; i < t->n_said && t->said[i].who == WHO_RESULT; i++)
        if (str_eq(t->said[i].id, id))
            return true;
    return false;
}

const char *talk_unpaired(struct arena *a, const struct talk *t)
{
    for (size_t i = 0; i < t->n_said; i++) {
        const struct said *s = &t->said[i];
        const json_t *call;
        size_t k;
        json_array_foreach(s->calls, k, call) if (!has_result(t, i + 1, member(call, "id")))
        {
            return arena_fmt(a,
                             "An assistant message with 'tool_calls' must be followed by tool "
                             "messages responding to each 'tool_call_id'. The following "
                             "tool_call_ids did not have response messages: %.*s",
                             STR_FMT(member(call, "id")));
        }
        if (t->api == API_ANTHROPIC && s->who == WHO_MODEL && s->id.len > 0 &&
            !has_result(t, i + 1, s->id))
            return arena_fmt(a,
                             "messages.%zu: `tool_use` ids were found without `tool_result` "
                             "blocks immediately after: %.*s",
                             i, STR_FMT(s->id));
    }
    return NULL;
}

void talk_cut(struct talk *t, int64_t window)
{
    int64_t room = window * TOKEN_BYTES;
    if (t->n_prompt <= window)
        return;
    for (size_t i = t->n_said; i-- > 0;) {
        struct str *s = &t->said[i].text;
        if ((int64_t)s->len > room)
            *s = str_drop(*s, s->len - (size_t)room);
        room -= (int64_t)s->len;
    }
    t->n_prompt = window;
}

/* ---- tokens ---- */

int32_t token_take(struct str s, size_t *ret_len)
{
    size_t n = s.len < TOKEN_BYTES ? s.len : TOKEN_BYTES;
    uint32_t id = (uint32_t)n << 24;
    for (size_t i = 0; i < n; i++)
        id |= (uint32_t)(unsigned char)s.ptr[i] << 8 * i;
    *ret_len = n;
    return (int32_t)id;
}

/* Special tokens are read where they stand in the text. */
void tokens_add(struct arena *a, int32_t **ids, size_t *n, struct str s)
{
    int32_t *all = arena_new(a, int32_t, *n + s.len);
    if (*n > 0)
        memcpy(all, *ids, *n * sizeof *all);
    while (s.len > 0) {
        size_t len;
        struct str run = s;
        const char *special = memmem(s.ptr, s.len, "<|im_", 5);
        if (special != NULL)
            run.len = (size_t)(special - s.ptr);
        if (str_starts(s, S("<|im_start|>"))) {
            all[(*n)++] = ID_START;
            len = 12;
        } else if (str_starts(s, S("<|im_end|>"))) {
            all[(*n)++] = ID_END;
            len = 10;
        } else {
            all[(*n)++] = token_take(run.len > 0 ? run : s, &len);
        }
        s = str_drop(s, len);
    }
    *ids = all;
}

int64_t tokens_count(struct str s)
{
    return (int64_t)(s.len + TOKEN_BYTES - 1) / TOKEN_BYTES;
}

struct str token_text(struct arena *a, int32_t id)
{
    uint32_t n = ((uint32_t)id >> 24) & 3;
    char bytes[TOKEN_BYTES];
    for (uint32_t i = 0; i < n; i++)
        bytes[i] = (char)((uint32_t)id >> 8 * i & 0xff);
    return id == ID_START ? S("<|im_start|>")
           : id == ID_END ? S("<|im_end|>")
                          : str_copy(a, (struct str){ bytes, n });
}

/* ---- the template ---- */

void call_render(struct buf *b, const char *name, struct str args)
{
    buf_addf(b, "\n<tool_call>\n{\"name\": \"%s\", \"arguments\": %.*s}\n</tool_call>", name,
             STR_FMT(args));
}

struct str talk_render(struct arena *a, const struct talk *t)
{
    static const char *const roles[] = { [WHO_SYSTEM] = "system",
                                         [WHO_USER] = "user",
                                         [WHO_MODEL] = "assistant",
                                         [WHO_RESULT] = "tool" };
    struct buf b = { .arena = a, .max = TEXT_MAX };
    for (size_t i = 0; i < t->n_said; i++) {
        const struct said *s = &t->said[i];
        const json_t *call;
        size_t k;
        buf_addf(&b, "<|im_start|>%s\n", roles[s->who]);
        buf_add(&b, s->text);
        json_array_foreach(s->calls, k, call)
        {
            const json_t *f = json_object_get(call, "function");
            call_render(&b, str_z(a, member(f, "name")), member(f, "arguments"));
        }
        buf_addz(&b, "<|im_end|>\n");
    }
    buf_addz(&b, "<|im_start|>assistant\n");
    return (struct str){ b.ptr, b.len };
}

/* ---- ids of calls: three digits each for turn and place, two for the number ---- */

#define BASE 16
#define ID_DIGITS 8

const char *id_make(struct arena *a, const struct id_form *f, size_t turn, size_t place, size_t n)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char rest[64];
    uint64_t x = turn * 4096 + place + 1;
    int more = f->len - ID_DIGITS;
    for (int i = 0; i < more && i < 63; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        rest[i] = digits[(x >> 33) % (f->hex ? 16 : 36)];
    }
    rest[more] = '\0';
    return arena_fmt(a, "%s%03zx%03zx%02zx%s", f->prefix, turn & 0xfff, place & 0xfff, n & 0xff,
                     rest);
}

static size_t number(struct str s)
{
    size_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char *at = strchr("0123456789abcdef", s.ptr[i]);
        v = v * BASE + (at ? (size_t)(at - "0123456789abcdef") : 0);
    }
    return v;
}

bool id_read(struct arena *a, const struct id_form *f, struct str id, size_t *ret_turn,
             size_t *ret_place)
{
    struct str s = str_drop(id, strlen(f->prefix));
    if (!str_starts(id, str_from(f->prefix)) || s.len != (size_t)f->len)
        return false;
    size_t turn = number((struct str){ s.ptr, 3 }), place = number((struct str){ s.ptr + 3, 3 });
    size_t n = number((struct str){ s.ptr + 6, 2 });
    if (!str_eq(id, str_from(id_make(a, f, turn, place, n))))
        return false;
    *ret_turn = turn;
    *ret_place = place;
    return true;
}
