#include "optimize/loop.h"

#include <sys/stat.h>

#include "core/json.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"
#include "workspace/workspace.h"

#define CONFIRMS_MAX 5 /* candidates that fail their second look before we give up */

static void say(struct loop *l, const char *line)
{
    if (l->cfg->say != NULL)
        l->cfg->say(line);
}

void loop_say(struct author_ctx *ctx, const char *line)
{
    struct loop *l = ctx->loop;
    own_arena tmp = { 0 };
    say(l, arena_fmt(&tmp, "%s: %s", l->cfg->author->name, line));
}

static void budget_refresh(struct loop *l)
{
    l->ctx.seconds_left = (double)(l->until_ms - clock_ms()) / 1000;
}

/* The first start of a log says whose it is. */
static enum err_code owner_check(struct loop *l, const json_t *start, struct err *err)
{
    const struct optimize_config *cfg = l->cfg;
    const struct {
        const char *what, *is, *wanted;
    } rows[] = {
        { "task", json_string_value(json_object_get(json_object_get(start, "task"), "hash")),
          cfg->task->hash },
        { "author", json_string_value(json_object_get(start, "author")), cfg->author->name },
        { "target", json_string_value(json_object_get(start, "target")),
          target_name(cfg->exam.target) },
        { "preset", json_string_value(json_object_get(start, "preset")),
          preset_name(cfg->exam.preset) },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].is == NULL || strcmp(rows[i].is, rows[i].wanted) != 0) {
            err_raise(err, ERR_STATE, "'%s' holds a run of another %s (%s, not %s)", cfg->out,
                      rows[i].what, rows[i].is ? rows[i].is : "unnamed", rows[i].wanted);
            return err_hint(err, "--out names another folder; --fresh sets that run aside");
        }
    return OK;
}

enum err_code loop_resume(struct loop *l, const json_t *events, struct err *err)
{
    size_t i;
    const json_t *e;
    json_array_foreach(events, i, e)
    {
        const char *name = json_string_value(json_object_get(e, "event"));
        if (strcmp(name, "start") == 0 && owner_check(l, e, err) != OK)
            return err->code;
        if (strcmp(name, "attempt") != 0)
            continue;
        if (verdict_from_json(json_object_get(e, "verdict"), l->scratch, err) != OK)
            return err_within(err, "'%s', event %zu", l->log.path, i + 1);
        keeper_add(&l->keeper, l->scratch, false);
        l->n_events++;
    }
    return OK;
}

static const char *candidate_dir(struct loop *l, const char *hash)
{
    return path_join(l->arena, l->candidates_dir, hash);
}

/* A folder that was changed by somebody is not the candidate that the log speaks of. */
static enum err_code candidate_back(struct loop *l, const char *hash, struct candidate *ret,
                                    struct err *err)
{
    const char *dir = candidate_dir(l, hash);
    if (candidate_read(l->arena, dir, l->cfg->exam.target, ret, err) != OK)
        return err->code;
    if (strcmp(ret->hash, hash) != 0)
        return err_raise(err, ERR_STATE, "'%s' was changed since it was graded", dir);
    return OK;
}

static void attempt_say(struct loop *l, const struct verdict *v, bool full)
{
    own_arena tmp = { 0 };
    struct buf b = { .arena = &tmp, .max = 2048 };
    buf_addf(&b, "%3d  %s %.8s  %s", l->n_events, v->author, v->candidate_hash,
             verdict_status_name(v->status));
    if (verdict_right(v))
        buf_addf(&b, "  %.1f us  %.2fx best-of-PyTorch [%.2f, %.2f]  milestone %d  %s",
                 v->time_us[ARM_CANDIDATE].median, v->vs_best.median, v->vs_best.lo, v->vs_best.hi,
                 v->reward_milestone, precision_name(v->precision));
    else
        buf_addf(&b, ": %s", v->reason);
    buf_addz(&b, full ? "  (full)" : "");
    say(l, b.ptr);
}

static enum err_code attempt_log(struct loop *l, const struct verdict *v, bool full,
                                 struct err *err)
{
    json_t *e =
        json_pack("{s:s, s:i, s:s, s:s, s:b, s:s, s:f, s:i, s:o}", "run", l->res->run, "n",
                  l->n_events, "candidate", v->candidate_hash, "author", v->author, "full", full,
                  "status", verdict_status_name(v->status), "us", v->time_us[ARM_CANDIDATE].median,
                  "milestone", v->reward_milestone, "verdict", verdict_json(v));
    return runlog_add(&l->log, "attempt", e, err);
}

static enum err_code best_fill(struct loop *l, const char *dir, const struct kept *best,
                               struct err *err)
{
    own_arena tmp = { 0 };
    struct candidate c;
    own_json j = verdict_json(best->v);
    own_mem char *text = json_dumps(j, JSON_INDENT(2));
    if (text == NULL)
        return err_raise(err, ERR_SYSTEM, "no memory for a verdict");
    if (candidate_back(l, best->hash, &c, err) != OK ||
        workspace_lay(dir, l->cfg->task, c.contract, err) != OK ||
        workspace_put(dir, &c, err) != OK ||
        file_write(path_join(&tmp, dir, "verdict.json"), str_from(text), 0644, err) != OK)
        return err->code;
    return chmod(dir, 0755) == 0 ? OK : err_sys(err, "open up '%s'", dir);
}

/* Kernels and verdict change together or not at all. */
static enum err_code best_write(struct loop *l, const struct kept *best, struct err *err)
{
    own_arena tmp = { 0 };
    const char *fresh = NULL;
    if (dir_temp(&tmp, l->cfg->out, ".best", &fresh, err) != OK)
        return err->code;
    if (best_fill(l, fresh, best, err) == OK && workspace_place(fresh, l->best_dir, err) == OK) {
        l->written = best->v;
        return OK;
    }
    struct err later = { 0 }; /* must not hide the cause */
    (void)!dir_remove(fresh, &later);
    return err_within(err, "keep the best candidate");
}

enum err_code loop_settle(struct loop *l, struct err *err)
{
    const struct kept *best = keeper_best(&l->keeper, AMONG_FULL);
    l->res->confirmed = best != NULL;
    if (best == NULL)
        best = keeper_best(&l->keeper, AMONG_ALL);
    l->res->found = best != NULL;
    l->res->passed = 0;
    for (size_t i = 0; i < l->keeper.n; i++)
        l->res->passed += verdict_right(l->keeper.all[i].v);
    if (best == NULL)
        return dir_remove(l->best_dir, err); /* what lay there failed its second look */
    l->res->best = *best->v;
    l->res->beats = l->res->confirmed && optimize_beats(best->v, l->cfg->exam.against);
    return l->written == best->v ? OK : best_write(l, best, err);
}

/* Record a verdict: files first, then the log that speaks of them, then what follows. */
static enum err_code verdict_keep(struct loop *l, const struct candidate *c,
                                  const struct verdict *v, bool full, struct err *err)
{
    const struct kept *before = keeper_best(&l->keeper, AMONG_ALL);
    double best_us = before ? before->v->time_us[ARM_CANDIDATE].median : 0;
    l->n_events++;
    l->res->attempts++;
    if (verdict_right(v) && workspace_put(candidate_dir(l, c->hash), c, err) != OK)
        return err->code;
    if (attempt_log(l, v, full, err) != OK)
        return err->code;
    attempt_say(l, v, full);
    size_t gone = keeper_forget_foreign(&l->keeper, v);
    if (gone > 0) {
        own_arena tmp = { 0 };
        say(l, arena_fmt(&tmp, "%zu earlier verdicts are of another device or PyTorch: dropped",
                         gone));
        best_us = 0;
    }
    keeper_add(&l->keeper, v, full);
    const struct kept *now = keeper_best(&l->keeper, AMONG_ALL);
    bool mine = now != NULL && strcmp(now->hash, v->candidate_hash) == 0;
    if (mine && (best_us == 0 || now->v->time_us[ARM_CANDIDATE].median < best_us))
        return best_write(l, now, err);
    return OK;
}

static enum err_code candidate_grade(struct loop *l, struct candidate *c, bool quick,
                                     struct verdict *ret, struct err *err)
{
    const struct grade_options opt = { .until = GRADE_TIME, .quick = quick };
    if (exam_grade(l->exam, c, &opt, ret, err) != OK)
        return err->code;
    memcpy(ret->candidate_hash, c->hash, sizeof ret->candidate_hash);
    enum err_code code = exam_keep(l->exam, c, &opt, ret, err);
    if (code == OK)
        code = verdict_keep(l, c, ret, !quick, err);
    budget_refresh(l);
    return code;
}

enum err_code loop_grade(struct author_ctx *ctx, struct candidate *c, bool quick,
                         struct verdict *ret, struct err *err)
{
    struct loop *l = ctx->loop;
    if (stop_check(err) != OK)
        return err->code;
    if (c->author == NULL)
        c->author = l->cfg->author->name;
    candidate_seal(c);
    budget_refresh(l);
    const struct kept *known = keeper_find(&l->keeper, c->hash);
    if (known != NULL && (quick || known->full)) {
        l->res->reused++;
        *ret = *known->v;
        return OK;
    }
    if (ctx->seconds_left <= 0) {
        l->spent = true;
        return err_raise(err, ERR_TIMEOUT, "the budget of %g s is spent", l->cfg->seconds);
    }
    return candidate_grade(l, c, quick, ret, err);
}

/* A candidate whose files are gone or changed cannot be the best any more. */
static void refute(struct loop *l, const struct kept *k, const char *why)
{
    own_arena tmp = { 0 };
    say(l, arena_fmt(&tmp, "%.8s is no candidate for best: %s", k->hash, why));
    *l->scratch = *k->v;
    l->scratch->status = VERDICT_WRONG;
    keeper_add(&l->keeper, l->scratch, false);
}

enum err_code loop_confirm(struct loop *l, struct err *err)
{
    for (int i = 0; i < CONFIRMS_MAX; i++) {
        const struct kept *best = keeper_best(&l->keeper, AMONG_ALL);
        struct candidate c = { 0 };
        if (best == NULL || best->full)
            return OK;
        if (stop_check(err) != OK)
            return err->code;
        if (candidate_back(l, best->hash, &c, err) != OK) {
            refute(l, best, err->text);
            continue;
        }
        c.author = str_z(l->arena, str_from(best->v->author));
        if (candidate_grade(l, &c, false, l->scratch, err) != OK)
            return err->code;
    }
    return OK;
}
