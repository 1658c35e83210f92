/* Right on every input family, with weights that changed, at addresses that change and recur. */
#include <math.h>
#include <stdio.h>

#include "core/json.h"
#include "harness/exam_int.h"

#define DRAWS_MIN 6
#define ASK_MS 300000
#define FIRST_MS 8000 /* a first call loads kernels and libraries */

static enum err_code draw(struct exam *x, int set, const char *family, bool again, struct err *err)
{
    own_json answer = NULL;
    json_t *ask = json_pack("{s:[i],s:s,s:s,s:b,s:b,s:b}", "sets", set, "family", family, "weights",
                            "keep", "poison", 1, "flush", 0, "again", again);
    return worker_ask(x->worker, "draw", ask, ASK_MS, NULL, &answer, err);
}

static enum err_code draw_weights(struct exam *x, const char *how, struct err *err)
{
    own_json answer = NULL;
    json_t *ask = json_pack("{s:[],s:s,s:s}", "sets", "family", x->family[0], "weights", how);
    return worker_ask(x->worker, "draw", ask, ASK_MS, NULL, &answer, err);
}

/* What is not finite travels as null. */
static double real_or(const json_t *row, const char *key, double otherwise)
{
    const json_t *j = json_object_get(row, key);
    return json_is_number(j) ? json_number_value(j) : otherwise;
}

static enum err_code read_check(const json_t *row, struct verdict *v, struct err *err)
{
    struct check c = { .first = -1 };
    struct str family, output, reason;
    if (json_get_text(row, "family", &family, err) != OK ||
        json_get_text(row, "output", &output, err) != OK ||
        json_get_text(row, "reason", &reason, err) != OK ||
        json_get_int(row, "misses", &c.misses, err) != OK ||
        json_get_int(row, "n", &c.n, err) != OK || json_get_int(row, "first", &c.first, err) != OK)
        return err->code;
    c.max_err = real_or(row, "max_err", INFINITY);
    c.rel_l2 = real_or(row, "rel_l2", INFINITY);
    c.got = real_or(row, "got", NAN);
    c.want = real_or(row, "want", NAN);
    snprintf(c.family, sizeof c.family, "%.*s", STR_FMT(family));
    snprintf(c.output, sizeof c.output, "%.*s", STR_FMT(output));
    if (v->n_checks < CHECKS_MAX)
        v->check[v->n_checks++] = c;
    if (c.misses > 0 && v->reason[0] == '\0')
        snprintf(
            v->reason, sizeof v->reason,
            "%s is wrong at %lld of %lld elements on family '%s' (first at %lld); the rule: %.*s",
            c.output, (long long)c.misses, (long long)c.n, c.family, (long long)c.first,
            (int)(reason.len < 120 ? reason.len : 120), reason.ptr);
    return OK;
}

static enum precision precision_from(struct str name)
{
    static const enum precision all[] = {
#define X(id, text) id,
        PRECISIONS(X)
#undef X
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (str_eq(name, str_from(precision_name(all[i]))))
            return all[i];
    return PREC_NONE;
}

/* Ask for the comparison of one set and put it into the verdict. */
static enum err_code compare(struct exam *x, int set, bool classify, struct verdict *v,
                             struct verify_result *r, struct err *err)
{
    own_json answer = NULL;
    json_t *rows = NULL, *row;
    struct str precision;
    bool pass = false, intact = true, guarded = true;
    double tol = 0, rel = 0;
    size_t i;
    if (worker_ask(x->worker, "compare",
                   json_pack("{s:[i],s:b}", "sets", set, "precision", classify), ASK_MS, NULL,
                   &answer, err) != OK)
        return err->code;
    if (json_get_flag(answer, "pass", &pass, err) != OK ||
        json_get_flag(answer, "inputs_intact", &intact, err) != OK ||
        json_get_flag(answer, "guards_intact", &guarded, err) != OK ||
        json_get_real(answer, "tol", &tol, err) != OK ||
        json_get_real(answer, "rel_l2", &rel, err) != OK ||
        json_get_text(answer, "precision", &precision, err) != OK ||
        json_get_list(answer, "outputs", &rows, err) != OK)
        return err_within(err, "compare");
    json_array_foreach(rows, i, row) if (read_check(row, v, err) != OK) return err->code;
    v->tol_used = tol > v->tol_used ? tol : v->tol_used;
    r->inputs_changed = r->inputs_changed || !intact;
    if (!intact && v->reason[0] == '\0')
        snprintf(v->reason, sizeof v->reason, "the candidate wrote into its inputs");
    if (!guarded && v->reason[0] == '\0')
        snprintf(v->reason, sizeof v->reason,
                 "the candidate wrote beside its outputs: past an end, or before a beginning");
    if (!pass)
        r->pass = false;
    if (pass && classify) {
        enum precision p = precision_from(precision);
        if (v->precision < p)
            v->precision = p;
        if (rel > v->rel_l2)
            v->rel_l2 = rel;
    }
    return OK;
}

static enum err_code setup_again(struct runner *run, struct verify_result *r, struct err *err)
{
    struct ca_msg m = { .op = CA_OP_SETUP };
    r->step = STEP_SETUP;
    return runner_say(run, &m, -1, 60000, &r->reply, err);
}

static enum err_code call_once(struct exam *x, struct runner *run, int set, struct verify_result *r,
                               struct err *err)
{
    struct ca_msg go = { .op = CA_OP_GO, .a = 1, .set = { (uint16_t)set } };
    r->step = STEP_GO;
    return runner_say(run, &go, -1, r->first_ms + go_limit_ms(x, 1), &r->reply, err);
}

/* The comparison finds the runner stopped: what it did not write before its answer counts as not
 * written. */
static enum err_code judged(struct exam *x, struct runner *run, int set, bool classify,
                            struct verdict *v, struct verify_result *r, struct err *err)
{
    if (box_pause(runner_box(run), err) != OK || compare(x, set, classify, v, r, err) != OK)
        return err->code;
    return box_resume(runner_box(run), err);
}

/* One draw: new values, perhaps new weights, a call, the comparison. */
static enum err_code one_draw(struct exam *x, struct runner *run, int i, struct verdict *v,
                              struct verify_result *r, struct err *err)
{
    const char *family = x->family[i % x->n_families];
    const char *weights = i == 0 ? "redraw" : i == 2 || i == 4 ? "touch" : NULL;
    /* 0 1 1 2 2 3 3...: every address is used with two different sets of values. */
    int set = (i + 1) / 2 % x->n_sets;
    if (weights != NULL) { /* before the inputs: setup finds none of the next call's */
        if (draw_weights(x, weights, err) != OK || setup_again(run, r, err) != OK ||
            reply_failed(&r->reply))
            return err->code;
    }
    if (draw(x, set, family, false, err) != OK || call_once(x, run, set, r, err) != OK ||
        reply_failed(&r->reply))
        return err->code;
    if (judged(x, run, set, i < 2, v, r, err) != OK || i != 1)
        return err->code;
    /* The same inputs over other poison: what was not written, or raced, shows. */
    if (draw(x, set, family, true, err) != OK || call_once(x, run, set, r, err) != OK ||
        reply_failed(&r->reply))
        return err->code;
    return judged(x, run, set, false, v, r, err);
}

enum err_code verify_candidate(struct exam *x, struct runner *run, const struct grade_options *opt,
                               struct verdict *v, struct verify_result *ret, struct err *err)
{
    int draws = x->n_families > DRAWS_MIN ? x->n_families : DRAWS_MIN;
    *ret = (struct verify_result){ .first_ms = opt->first_ms > 0 ? opt->first_ms : FIRST_MS,
                                   .pass = true };
    v->precision = PREC_FP32;
    for (int i = 0; i < draws && ret->pass; i++) {
        err->code = OK;
        if (one_draw(x, run, i, v, ret, err) != OK)
            return err->code;
        if (reply_failed(&ret->reply))
            ret->pass = false;
    }
    if (!ret->pass) { /* what is not right has no class */
        v->precision = PREC_NONE;
        v->rel_l2 = 0;
    }
    return OK;
}
