#include "optimize/optimize.h"

#include <stdio.h>

#include "core/json.h"
#include "optimize/loop.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

static void say(const struct loop *l, const char *line)
{
    if (l->cfg->say != NULL)
        l->cfg->say(line);
}

/* --fresh: the old log keeps its content under another name. */
static enum err_code old_aside(struct loop *l, const char *path, struct err *err)
{
    const char *aside =
        path_join(l->arena, l->cfg->out, arena_fmt(l->arena, "run-until-%s.jsonl", l->res->run));
    if (!path_exists(path))
        return OK;
    if (rename(path, aside) != 0)
        return err_sys(err, "set '%s' aside", path);
    return dir_remove(l->best_dir, err);
}

static json_t *start_event(const struct loop *l)
{
    const struct optimize_config *cfg = l->cfg;
    return json_pack("{s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:s, s:f, s:s}", "run", l->res->run,
                     "task", "hash", cfg->task->hash, "name", cfg->task->name, "author",
                     cfg->author->name, "target", target_name(cfg->exam.target), "preset",
                     preset_name(cfg->exam.preset), "against",
                     cfg->exam.against == AGAINST_BEST ? "best" : "paper", "seconds", cfg->seconds,
                     "product", CA_VERSION_TEXT);
}

static enum err_code store_state(const struct loop *l, const char *state, struct err *err)
{
    if (l->cfg->exam.store == NULL)
        return OK;
    own_json config = start_event(l);
    own_mem char *text = json_dumps(config, JSON_COMPACT);
    return store_run_put(l->cfg->exam.store, l->res->run, "optimize", text ? text : "{}", state,
                         err);
}

static enum err_code folder_open(struct loop *l, struct err *err)
{
    own_json events = NULL;
    const char *path = path_join(l->arena, l->cfg->out, "run.jsonl");
    l->best_dir = path_join(l->arena, l->cfg->out, "best");
    l->candidates_dir = path_join(l->arena, l->cfg->out, "candidates");
    if (dir_make(l->candidates_dir, 0755, err) != OK)
        return err->code;
    if (l->cfg->fresh && old_aside(l, path, err) != OK)
        return err->code;
    if (runlog_open(l->arena, path, &l->log, &events, err) != OK ||
        loop_resume(l, events, err) != OK)
        return err->code;
    if (l->n_events > 0)
        say(l, arena_fmt(l->arena, "resuming: %d gradings in '%s'", l->n_events, path));
    if (store_state(l, "running", err) != OK)
        return err->code;
    return runlog_add(&l->log, "start", start_event(l), err);
}

#define UNSETTLED_MAX 0.01 /* docs/exam.md: past this no answer can be told from chance */

/* Facts without which no answer can be judged. */
static const char *unjudgeable(const json_t *check)
{
    static const struct {
        const char *fact, *why;
    } rows[] = {
        { "eager", "it does not run in eager PyTorch" },
        { "deterministic", "two calls on the same input disagree" },
        { "finite", "its outputs are not finite" },
    };
    const json_t *facts = json_object_get(check, "facts");
    if (json_number_value(json_object_get(facts, "unsettled_share")) > UNSETTLED_MAX)
        return "more than 1% of its integer outputs hang on rounding";
    for (size_t i = 0; i < COUNT(rows); i++)
        if (json_is_false(json_object_get(facts, rows[i].fact)))
            return rows[i].why;
    return NULL;
}

static enum err_code soundness_look(struct loop *l, struct err *err)
{
    size_t i;
    json_t *line;
    if (l->cfg->no_check) {
        l->res->soundness = json_pack("{s:b}", "looked", 0);
        return OK;
    }
    if (exam_check(l->exam, &l->res->soundness, err) != OK)
        return err->code;
    const char *why = unjudgeable(l->res->soundness);
    if (why != NULL) {
        err_raise(err, ERR_TASK, "task '%s' cannot be judged: %s", l->cfg->task->name, why);
        return err_hint(err, "`cuda-agent task check %s` says more", l->cfg->task->path);
    }
    json_array_foreach(json_object_get(l->res->soundness, "degenerate"), i, line)
    {
        if (json_is_string(line))
            say(l, arena_fmt(l->arena, "degenerate task: %s", json_string_value(line)));
    }
    return OK;
}

/* No graph is no obstacle: the author is told by NULL, the person by a line, the result by
 * `traced`. An exporter that stumbles over a model raises anything, which the worker can only
 * report as the machine's; a dead worker is an error all the same. */
static enum err_code graph_look(struct loop *l, json_t **ret, struct err *err)
{
    l->res->traced = exam_trace(l->exam, ret, err) == OK;
    if (l->res->traced)
        return OK;
    if (stop_asked() || (err->code != ERR_TASK && err->code != ERR_CUDA))
        return err->code;
    say(l, arena_fmt(l->arena, "no operator graph: %s", err->text));
    *ret = NULL;
    return OK;
}

static enum err_code exam_begin(struct loop *l, struct err *err)
{
    say(l, "starting the exam");
    if (exam_open(&l->cfg->exam, l->cfg->task, &l->exam, err) != OK ||
        soundness_look(l, err) != OK || stop_check(err) != OK)
        return err->code;
    if (exam_baselines(l->exam, &l->res->baselines, err) != OK)
        return err->code;
    json_t *e = json_pack("{s:s, s:O, s:O}", "run", l->res->run, "baselines", l->res->baselines,
                          "soundness", l->res->soundness);
    return runlog_add(&l->log, "baseline", e, err);
}

static const char *hello_text(struct loop *l, const char *key)
{
    const json_t *device = json_object_get(exam_hello(l->exam), "device");
    const char *text = json_string_value(json_object_get(device, key));
    return text ? str_z(l->arena, str_from(text)) : NULL;
}

static void ctx_fill(struct loop *l, const json_t *graph)
{
    const struct optimize_config *cfg = l->cfg;
    json_int_t threads = json_integer_value(json_object_get(exam_hello(l->exam), "threads"));
    const char *name = hello_text(l, "name");
    const json_t *inner = json_object_get(graph, "graph");
    l->ctx = (struct author_ctx){ .task = cfg->task,
                                  .sig = exam_signature(l->exam),
                                  .graph = inner ? inner : graph,
                                  .target = cfg->exam.target,
                                  .preset = cfg->exam.preset,
                                  .cuda_arch = hello_text(l, "arch"),
                                  .device_name = name ? name : "unknown",
                                  .threads = cfg->exam.threads,
                                  .seconds_left = cfg->seconds,
                                  .grade = loop_grade,
                                  .say = loop_say,
                                  .loop = l };
    if (l->ctx.threads == 0 && threads > 0 && threads < 65536)
        l->ctx.threads = (int)threads;
}

/* The ends of an author's work that are no failure: the budget, and ^C. */
static enum err_code ended(struct loop *l, enum err_code code, struct err *err)
{
    if (code == OK || (code == ERR_TIMEOUT && l->spent))
        return OK;
    if (stop_asked()) { /* ^C reaches the boxed processes as well: whatever failed, failed by it */
        l->res->stopped = true;
        return OK;
    }
    struct err later = { 0 };
    json_t *e =
        json_pack("{s:s, s:s, s:s}", "run", l->res->run, "code", err_name(code), "text", err->text);
    (void)!runlog_add(&l->log, "error", e, &later); /* the first error is the one to tell */
    return code;
}

static enum err_code author_work(struct loop *l, struct err *err)
{
    own_json graph = NULL;
    if (graph_look(l, &graph, err) != OK)
        return err->code;
    ctx_fill(l, graph);
    l->until_ms = clock_ms() + (int64_t)(l->cfg->seconds * 1000);
    if (ended(l, loop_confirm(l, err), err) != OK) /* the best of an earlier run, if any */
        return err->code;
    l->until_ms = clock_ms() + (int64_t)(l->cfg->seconds * 1000);
    l->ctx.seconds_left = l->cfg->seconds;
    if (!l->res->stopped && ended(l, l->cfg->author->run(&l->ctx, err), err) != OK)
        return err_within(err, "author '%s'", l->cfg->author->name);
    if (!l->res->stopped && ended(l, loop_confirm(l, err), err) != OK)
        return err->code;
    return loop_settle(l, err);
}

static enum err_code interrupted(struct err *err)
{
    (void)!stop_check(err); /* which replaces whatever broke by "interrupted" */
    return err_hint(err, "the same command resumes where this one stopped");
}

static enum err_code run_in(struct loop *l, struct err *err)
{
    if (folder_open(l, err) != OK || exam_begin(l, err) != OK || author_work(l, err) != OK)
        return err->code;
    const struct optimize_result *r = l->res;
    json_t *e = json_pack("{s:s, s:b, s:b, s:b, s:s, s:i, s:i}", "run", r->run, "stopped",
                          r->stopped, "confirmed", r->confirmed, "beats", r->beats, "best",
                          r->found ? r->best.candidate_hash : "", "attempts", r->attempts, "reused",
                          r->reused);
    if (runlog_add(&l->log, "end", e, err) != OK)
        return err->code;
    return store_state(l, r->stopped ? "stopped" : "done", err);
}

enum err_code optimize_run(const struct optimize_config *cfg, struct optimize_result *ret,
                           struct err *err)
{
    own_arena arena = { 0 };
    *ret = (struct optimize_result){ 0 };
    struct loop l = { .cfg = cfg, .res = ret, .arena = &arena, .log = RUNLOG_CLOSED };
    l.keeper.arena = &arena;
    l.scratch = arena_new(&arena, struct verdict, 1);
    store_id(ret->run);
    enum err_code code = run_in(&l, err);
    if (code != OK && stop_asked()) /* ^C broke whatever was going on */
        code = interrupted(err);
    if (code != OK) {
        struct err later = { 0 }; /* the first error is the one to tell */
        (void)!store_state(&l, code == ERR_INTERRUPT ? "stopped" : "failed", &later);
    }
    exam_close(l.exam);
    runlog_close(&l.log);
    return code;
}
