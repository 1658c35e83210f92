/* A world for an agent: a folder, a model that answers from a script, an examiner with canned
 * verdicts. */
#ifndef TESTS_AGENT_WORLD_H
#define TESTS_AGENT_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/episode.h"
#include "agent/log.h"
#include "agent/parts.h"
#include "core/json.h"
#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"

#define MAYBE_UNUSED __attribute__((unused))
#define WORLD_TEXT_MAX ((size_t)64 << 20)

struct world {
    struct arena a;
    const char *top, *script_path; /* top: removed at the end */
    json_t *script;                /* `response` events */
    struct agent_config config;
    struct agent_hooks hooks;
    struct agent_attempt *attempt; /* that runs */
    struct tool_set set;
    const char *last_seen;  /* of say: what was done */
    int64_t die_at, events; /* the process kills itself behind so many events; 0: never */
    int verdicts;
    void (*on_event)(struct world *w, const json_t *event);
};

#define fine(call)                    \
    do {                              \
        if ((call) != OK)             \
            fail_msg("%s", err.text); \
    } while (0)

/* ---- the script ---- */

/* One answer: parts are given as "text:...", "think:...", or "NAME {args}". */
MAYBE_UNUSED static json_t *answer_parts(const char *const *part, int turn)
{
    json_t *list = json_array();
    for (int i = 0; part[i] != NULL; i++) {
        struct str rest = str_from(part[i]), name;
        char id[40];
        snprintf(id, sizeof id, "call_%d_%d", turn, i);
        if (str_starts(rest, S("text:")))
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "kind", "text", "text", part[i] + 5));
        else if (str_starts(rest, S("think:")))
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "kind", "thinking", "text", part[i] + 6));
        else if (str_cut(&rest, ' ', &name))
            json_array_append_new(list, json_pack("{s:s, s:s, s:s%, s:s}", "kind", "call", "id", id,
                                                  "name", name.ptr, name.len, "args",
                                                  rest.len ? rest.ptr : ""));
    }
    return list;
}

MAYBE_UNUSED static json_t *answers(struct world *w, const char *end, const char *const *part)
{
    int turn = (int)json_array_size(w->script);
    json_t *e = json_pack("{s:i, s:s, s:i, s:s, s:i, s:i, s:s, s:[], s:o, s:{s:i, s:i, s:i, s:b}}",
                          "v", 1, "event", "response", "turn", turn, "end", end, "seq", turn,
                          "index", 0, "refused_by", "no", "notes", "parts",
                          answer_parts(part, turn), "usage", "input_total", 1000 + 10 * turn,
                          "input_cached", 900, "output_total", 50, "estimated", 1);
    assert_non_null(e);
    json_array_append_new(w->script, e);
    return e;
}
#define says(w, ...) answers((w), "stop", (const char *const[]){ __VA_ARGS__, NULL })
#define ends(w, end, ...) answers((w), (end), (const char *const[]){ __VA_ARGS__, NULL })

MAYBE_UNUSED static void script_write(struct world *w)
{
    FILE *f = fopen(w->script_path, "w");
    size_t i;
    json_t *e;
    assert_non_null(f);
    json_array_foreach(w->script, i, e)
    {
        char *text = json_dumps(e, JSON_COMPACT);
        fprintf(f, "%s\n", text);
        free(text);
    }
    fclose(f);
}

/* ---- the examiner ---- */

/* Verdicts by how often the word "fast" stands in the kernel: 100 us less 10 for each. */
MAYBE_UNUSED static enum err_code canned_run(struct tool_call *c, struct err *err)
{
    struct world *w = c->context;
    own_arena tmp = { 0 };
    struct str text;
    const char *dir = w->attempt->workspace;
    const char *path = path_join(&tmp, dir, "kernels/k.cu");
    char hash[SHA256_HEX];
    double us = 100;
    if (!path_exists(path))
        return err_raise(err, ERR_USAGE, "there is no kernels/k.cu");
    if (file_read(&tmp, path, 1 << 20, &text, err) != OK)
        return err->code;
    for (const char *at = text.ptr; (at = strstr(at, "fast")) != NULL; at += 4)
        us -= 10;
    bool right = strstr(text.ptr, "wrong") == NULL;
    sha256_text(text, hash);
    json_t *eval =
        json_pack("{s:s, s:s, s:{s:s, s:{s:{s:f}}, s:{s:{s:f}}, s:{s:i}}, s:[{s:s, s:o}]}", "step",
                  "profile", "candidate", hash, "verdict", "status", right ? "pass" : "wrong",
                  "time_us", "candidate", "median", us, "speedup", "vs_eager", "median", 200 / us,
                  "reward", "milestone", right ? us < 70 ? 3 : 2 : -1, "files", "path",
                  "kernels/k.cu", "text", json_stringn(text.ptr, text.len));
    assert_non_null(eval);
    w->verdicts++;
    if (episode_eval(w->attempt->episode, eval, err) != OK)
        return err->code;
    buf_addf(&c->text, "%s: %.1f us", right ? "pass" : "wrong", us);
    return OK;
}

MAYBE_UNUSED static enum err_code submit_run(struct tool_call *c, struct err *err)
{
    (void)err;
    buf_addz(&c->text, "submitted");
    return OK;
}

/* A tool that takes its time: pending until the time is over. */
MAYBE_UNUSED static enum err_code nap_step(struct tool_call *c, struct err *err)
{
    (void)err;
    c->pending = clock_ms() < c->until_ms;
    if (!c->pending)
        buf_addz(&c->text, "rested");
    return OK;
}

MAYBE_UNUSED static enum err_code nap_run(struct tool_call *c, struct err *err)
{
    (void)err;
    c->pending = true;
    c->until_ms = clock_ms() + arg_int(c->args, "ms", 1);
    return OK;
}

MAYBE_UNUSED static const struct tool_param nap_param[] = {
    { .name = "ms", .help = "How long.", .kind = PARAM_INT, .max = 100000 }
};

MAYBE_UNUSED static const struct tool world_tools[] = {
    { .name = "profile", .description = "Time it.", .run = canned_run },
    { .name = "submit", .description = "End.", .run = submit_run },
    { .name = "nap",
      .description = "Rest.",
      .param = nap_param,
      .n_param = 1,
      .run = nap_run,
      .step = nap_step },
};

/* ---- hooks ---- */

MAYBE_UNUSED static enum err_code world_prepare(void *ctx, struct agent_attempt *a,
                                                struct tools_spec *ret, struct err *err)
{
    struct world *w = ctx;
    own_arena tmp = { 0 };
    w->attempt = a;
    w->set = (struct tool_set){ world_tools, COUNT(world_tools), w };
    ret->set = &w->set;
    ret->n_sets = 1;
    return file_write(path_join(&tmp, a->workspace, "model.py"), S("class Model: pass\n"), 0644,
                      err);
}

MAYBE_UNUSED static void world_event(void *ctx, int attempt, const json_t *event)
{
    struct world *w = ctx;
    (void)attempt;
    if (w->on_event != NULL)
        w->on_event(w, event);
    if (++w->events == w->die_at)
        kill(getpid(), SIGKILL);
}

/* ---- life ---- */

MAYBE_UNUSED static struct world *world_new(void)
{
    struct err err = { 0 };
    struct world *w = calloc(1, sizeof *w);
    fine(dir_temp(&w->a, "/tmp", "ca-agent", &w->top, &err));
    chmod(w->top, 0755);
    w->script_path = path_join(&w->a, w->top, "script.jsonl");
    w->script = json_array();
    w->hooks = (struct agent_hooks){ .ctx = w, .prepare = world_prepare, .on_event = world_event };
    w->config = (struct agent_config){ .out = path_join(&w->a, w->top, "out"),
                                       .task_name = "toy",
                                       .task_hash = "0123",
                                       .target = "cuda",
                                       .contract = "native",
                                       .task_text = S("Make it fast."),
                                       .model_log = w->script_path,
                                       .prices = { 3, 0.3, 15 },
                                       .unsynced = true,
                                       .hooks = &w->hooks };
    return w;
}

MAYBE_UNUSED static void world_end(struct world *w)
{
    struct err err = { 0 };
    fine(dir_remove(w->top, &err));
    json_decref(w->script);
    arena_fini(&w->a);
    free(w);
}

MAYBE_UNUSED static struct agent_result world_run(struct world *w, int n)
{
    struct err err = { 0 };
    struct agent_result r = { 0 };
    script_write(w);
    fine(agent_run(&w->config, n, &w->a, &r, &err));
    return r;
}

/* The events of attempt 1 that count. A new reference. */
MAYBE_UNUSED static json_t *world_events_in(struct world *w, const char *out, int attempt)
{
    struct err err = { 0 };
    struct str text;
    size_t whole;
    own_json events = NULL;
    fine(file_read(&w->a, arena_fmt(&w->a, "%s/attempt-%d/events.jsonl", out, attempt),
                   WORLD_TEXT_MAX, &text, &err));
    fine(runlog_parse(text, &events, &whole, &err));
    return log_alive(events);
}
#define world_events(w) world_events_in((w), (w)->config.out, 1)

/* The n-th event of that name (from 0); NULL: there are fewer. */
MAYBE_UNUSED static const json_t *event_named(const json_t *events, const char *name, int n)
{
    size_t i;
    const json_t *e;
    json_array_foreach(events, i, e)
    {
        if (str_eq(member_text(e, "event"), str_from(name)) && n-- == 0)
            return e;
    }
    return NULL;
}

MAYBE_UNUSED static int count_named(const json_t *events, const char *name)
{
    int n = 0;
    while (event_named(events, name, n) != NULL)
        n++;
    return n;
}

/* What the run ended as, in one attempt. */
MAYBE_UNUSED static void ended_as(const struct agent_result *r, const char *status)
{
    if (strcmp(r->attempt[0].status, status) != 0)
        fail_msg("ended as %s (%s), wanted %s", r->attempt[0].status, r->attempt[0].reason, status);
}

#endif
