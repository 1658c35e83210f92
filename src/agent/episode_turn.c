/* A turn from its request to its end, but for the tools. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/context.h"
#include "agent/episode_int.h"
#include "agent/parts.h"
#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"

#define WASTE_MAX ((size_t)64 << 10) /* of texts that nobody sees, before memory is made anew */

/* ---- asking ---- */

/* The view, and the words that ask for a summary behind it; no tools. */
static void summary_chat(struct episode *e)
{
    const struct transcript *t = &e->t;
    struct chat_message *m = arena_new(&e->turn_arena, struct chat_message, t->n_view + 1);
    struct chat_part *p = arena_new(&e->turn_arena, struct chat_part, 1);
    *p = (struct chat_part){ .kind = CHAT_TEXT, .text = str_from(context_summary_prompt) };
    memcpy(m, t->view, t->n_view * sizeof *m);
    m[t->n_view] = (struct chat_message){ .role = CHAT_USER, .parts = p, .n_parts = 1 };
    e->chat.messages = m;
    e->chat.n_messages = t->n_view + 1;
}

void episode_ask(struct episode *e, struct model_ask *ret)
{
    const struct transcript *t = &e->t;
    e->chat = (struct chat){ .system = t->system, .messages = t->view, .n_messages = t->n_view };
    if (t->flight.summary) {
        summary_chat(e);
    } else {
        e->chat.tools = e->tool;
        e->chat.n_tools = e->n_tools;
    }
    *ret = (struct model_ask){ .chat = &e->chat,
                               .sampling = &e->sampling,
                               .turn = t->flight.turn,
                               .fallback = t->refusals >= 2 };
    episode_become(e, EPISODE_ANSWER);
}

/* ---- token ids ---- */

static enum err_code all_write(int fd, const void *bytes, size_t n, struct err *err)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return err_sys(err, "write token ids");
        at += put;
        n -= (size_t)put;
    }
    return OK;
}

/* The ids of prompt and answer as int32, then the answer's log-probabilities as float32. */
static enum err_code tokens_keep(struct episode *e, const struct reply_tokens *tokens, json_t *body,
                                 struct err *err)
{
    struct stat st;
    if (tokens->n_prompt + tokens->n_output == 0)
        return OK;
    own_fd fd = open(e->tokens_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || fstat(fd, &st) != 0)
        return err_sys(err, "open '%s'", e->tokens_path);
    own_arena tmp = { 0 };
    float *logprob = arena_new(&tmp, float, tokens->n_output);
    for (size_t i = 0; i < tokens->n_output; i++)
        logprob[i] = i < tokens->n_logprob ? (float)tokens->logprob[i] : __builtin_nanf("");
    if (all_write(fd, tokens->prompt, tokens->n_prompt * sizeof(int32_t), err) != OK ||
        all_write(fd, tokens->output, tokens->n_output * sizeof(int32_t), err) != OK ||
        all_write(fd, logprob, tokens->n_output * sizeof(float), err) != OK)
        return err->code;
    json_object_set_new(body, "tokens",
                        json_pack("{s:I, s:I, s:I}", "offset", (json_int_t)st.st_size, "prompt",
                                  (json_int_t)tokens->n_prompt, "output",
                                  (json_int_t)tokens->n_output));
    return OK;
}

/* ---- the answer ---- */

static json_t *response_body(const struct episode *e, const struct llm_outcome *o)
{
    struct reply reply = o->reply;
    if (o->fault.kind != FAULT_NONE)
        reply.fault = o->fault;
    json_t *body = response_json(&reply);
    if (e->t.flight.summary)
        json_object_set_new(body, "purpose", json_string("summary"));
    enum answer what = answer_of(body);
    json_object_set_new(body, "turn", json_integer(e->t.flight.turn));
    json_object_set_new(body, "index", json_integer(answer_joins(what) ? (json_int_t)e->t.n : -1));
    json_object_set_new(body, "ms", json_integer(o->wall_ms));
    json_object_set_new(body, "first_byte_ms", json_integer(o->first_byte_ms));
    json_object_set_new(body, "tries", json_integer(o->n_tries));
    json_object_set_new(body, "changes", text_json(o->changes));
    json_object_set_new(body, "cost", json_real(price_of(&e->config->prices, &reply.usage)));
    json_object_set_new(body, "tokens", json_null());
    return body;
}

/* What comes of a summary: the model's words, or the program's alone where none came. */
static enum err_code summary_take(struct episode *e, const struct llm_outcome *o, struct err *err)
{
    own_arena tmp = { 0 };
    struct buf b = { .arena = &tmp, .max = (size_t)256 << 10 };
    struct str words = str_trim(o->reply.text);
    bool good = o->fault.kind == FAULT_NONE && o->reply.end == REPLY_STOP && words.len > 0;
    if (good) {
        buf_addz(&b, "[The conversation before the last turns, summed up by you:]\n");
        buf_add(&b, words);
        buf_addz(&b, "\n\n");
    }
    buf_add(&b, context_table(&tmp, &e->t));
    json_t *body =
        context_drop(&e->t, good ? "summary" : "reset", good ? CONTEXT_RECENT : CONTEXT_RESET_KEEP,
                     (struct str){ b.ptr, b.len });
    if (episode_put(e, "context", body, err) != OK)
        return err->code;
    transcript_compact(&e->t);
    return OK;
}

enum err_code episode_answer(struct episode *e, const struct llm_outcome *o, struct err *err)
{
    bool summary = e->t.flight.summary;
    if (o->fault.kind == FAULT_CANCELLED) /* the turn has not been: it is begun anew */
        return episode_end(e, "stopped", "by the person", err);
    json_t *body = response_body(e, o);
    if (tokens_keep(e, &o->reply.tokens, body, err) != OK) {
        json_decref(body);
        return err->code;
    }
    if (episode_put(e, "response", body, err) != OK || (summary && summary_take(e, o, err) != OK))
        return err->code;
    bool calls = transcript_calls(&e->t, e->t.flight.index) > 0;
    episode_become(e, calls ? EPISODE_TOOLS : EPISODE_TURN);
    return OK;
}

/* ---- files and the examiner ---- */

enum err_code episode_files(struct episode *e, int64_t turn, struct err *err)
{
    json_t *tree = NULL;
    if (snapshot_take(&e->snapshot, e->attempt.workspace, e->objects, &tree, err) != OK)
        return err->code;
    /* After a resume the first look finds what the log has already. */
    if (tree == NULL || strcmp(e->snapshot.tree, e->t.tree) == 0) {
        json_decref(tree);
        return OK;
    }
    json_object_set_new(tree, "turn", json_integer(turn));
    return episode_put(e, "fs", tree, err);
}

static enum err_code eval_files(struct episode *e, json_t *files, struct err *err)
{
    size_t i;
    json_t *f;
    json_array_foreach(files, i, f)
    {
        char hash[SHA256_HEX];
        if (json_object_get(f, "text") == NULL)
            continue;
        if (objects_put(e->objects, member_text(f, "text"), hash, err) != OK)
            return err->code;
        json_object_set_new(f, "hash", json_string(hash));
        json_object_del(f, "text");
    }
    return OK;
}

enum err_code episode_eval(struct episode *e, json_t *eval, struct err *err)
{
    own_json body = eval;
    const json_t *best = e->t.best ? json_object_get(e->t.best, "verdict") : NULL;
    bool better = verdict_better(json_object_get(body, "verdict"), best) &&
                  !json_is_false(json_object_get(body, "best"));
    int64_t turn = e->t.flight.open ? e->t.flight.turn : e->t.next_turn;
    if (eval_files(e, json_object_get(body, "files"), err) != OK ||
        episode_files(e, turn, err) != OK)
        return err->code;
    json_object_set_new(body, "turn", json_integer(turn));
    json_object_set_new(body, "tree", json_string(e->t.tree));
    json_object_set_new(body, "best", json_boolean(better));
    if (episode_put(e, "eval", json_incref(body), err) != OK)
        return err->code;
    return better ? keep_offer(e->spec.keep, e->spec.number, e->t.best, e->objects, err) : OK;
}

enum err_code episode_judged(struct episode *e, const struct episode_verdict *v, struct err *err)
{
    own_arena tmp = { 0 };
    json_t *files = json_array();
    for (size_t i = 0; i < v->candidate->n_files; i++) {
        const struct source_file *f = &v->candidate->file[i];
        bool top = strcmp(f->name, MODEL_NEW) == 0;
        json_array_append_new(files, json_pack("{s:s, s:o}", "path",
                                               top ? f->name : path_join(&tmp, "kernels", f->name),
                                               "text", text_json(f->text)));
    }
    json_t *eval =
        json_pack("{s:s, s:s, s:O, s:o, s:b}", "step", v->step, "candidate", v->candidate->hash,
                  "verdict", v->verdict, "files", files, "best", v->may_be_best);
    if (eval != NULL && v->idea != NULL)
        json_object_set_new(eval, "idea", text_json(str_from(v->idea)));
    return episode_eval(e, eval, err);
}

/* ---- the end of a turn ---- */

enum err_code episode_turn_end(struct episode *e, struct err *err)
{
    int64_t turn = e->t.flight.turn;
    bool files = e->dirty || tools_running(e->tools) > 0;
    e->dirty = false;
    if (files && episode_files(e, turn, err) != OK)
        return err->code;
    struct totals totals = episode_totals(e);
    e->mark_ms = clock_ms();
    json_t *body =
        json_pack("{s:I, s:o}", "turn", (json_int_t)turn, "totals", totals_json(&totals));
    if (episode_put(e, "turn_end", body, err) != OK || log_sync(&e->log, err) != OK)
        return err->code;
    if (e->t.waste > WASTE_MAX && e->t.waste > e->t.bytes / 2)
        transcript_compact(&e->t);
    arena_fini(&e->turn_arena);
    episode_become(e, EPISODE_NEXT);
    return OK;
}
