#include "agent/context.h"

#include "agent/parts.h"

#define GUARD_TURNS 10  /* two clean-ups within them ... */
#define GUARD_SHARE 0.1 /* ... that free less than this of the window each are no help */
#define TRAILER_SHARE 0.6
#define CONTEXT_FULL 0.9 /* no room for an answer is left */
#define OVERFLOWS_MAX 3
#define TABLE_MAX ((size_t)16 << 10)
#define TABLE_ROWS 40

const char context_summary_prompt[] =
    "The conversation gets too long. Sum it up for yourself: what you write now takes the place of "
    "everything before the last turns. At most 1,500 words, no calls, under these headings:\n"
    "## Goal\n## What is known (facts, measurements, limits)\n## What was tried (idea, result, "
    "why)\n## Where things stand (files, the current version, what is broken)\n## What to do next\n"
    "A table of the examiner's answers is added by the program; do not repeat it.";

double context_share(const struct transcript *t, const struct budget *b)
{
    return (double)transcript_tokens(t) / (double)budget_window(b);
}

/* Two clean-ups in a row that freed next to nothing. */
static bool in_vain(const struct transcript *t, const struct budget *b)
{
    double little = GUARD_SHARE * (double)budget_window(b);
    for (size_t i = 0; i < 2; i++)
        if (t->cleanup[i].turn < 0 || t->next_turn - t->cleanup[i].turn > GUARD_TURNS ||
            (double)(t->cleanup[i].before - t->cleanup[i].after) >= little)
            return false;
    return true;
}

enum context_need context_need(const struct transcript *t, const struct budget *b)
{
    double share = context_share(t, b);
    bool cleaned = t->cleanup[0].turn == t->next_turn; /* since the last turn */
    if (cleaned && t->cleanup[0].reset)
        return share < CONTEXT_FULL && t->overflows < OVERFLOWS_MAX ? CONTEXT_FITS
                                                                    : CONTEXT_HOPELESS;
    if (t->overflows > 0)
        return t->overflows >= OVERFLOWS_MAX ? CONTEXT_HOPELESS
               : cleaned                     ? CONTEXT_FITS
               : t->overflows == 1           ? CONTEXT_MASK
                                             : CONTEXT_RESET;
    if (t->last == ANSWER_SUMMARY) /* its clean-up stands in its own turn */
        return share < CONTEXT_TRIGGER ? CONTEXT_FITS : CONTEXT_RESET;
    if (cleaned)
        return share < CONTEXT_TARGET ? CONTEXT_FITS : CONTEXT_SUMMARY;
    if (share < CONTEXT_TRIGGER)
        return CONTEXT_FITS;
    return in_vain(t, b) ? CONTEXT_HOPELESS : CONTEXT_MASK;
}

/* ---- leaving out ---- */

json_t *context_drop(const struct transcript *t, const char *kind, int64_t keep_turns,
                     struct str summary)
{
    json_t *dropped = json_array();
    size_t bytes = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct said *s = &t->said[i];
        if (s->gone || s->by == SAID_TASK || s->by == SAID_STEER ||
            s->turn >= t->next_turn - keep_turns)
            continue;
        json_array_append_new(dropped, json_integer((json_int_t)i));
        bytes += s->bytes;
    }
    int64_t before = transcript_tokens(t);
    int64_t after = before - (int64_t)((double)bytes / t->bytes_per_token) +
                    transcript_tokens_of(t, summary.len) - transcript_tokens_of(t, t->summary.len);
    json_t *items = json_array();
    return json_pack("{s:I, s:s, s:I, s:I, s:o, s:o, s:o}", "turn", (json_int_t)t->next_turn,
                     "kind", kind, "before", (json_int_t)before, "after",
                     (json_int_t)(after < 1 ? 1 : after), "items", items, "dropped", dropped,
                     "summary", text_json(summary));
}

/* ---- the table ---- */

static void ratio_tell(struct buf *b, const char *name, double ratio)
{
    if (ratio > 0)
        buf_addf(b, " | %s %.2fx", name, ratio);
}

static void row_tell(struct buf *b, const struct graded *g)
{
    buf_addf(b, "- turn %lld, %s %.8s: %s", (long long)g->turn, g->step, g->candidate, g->status);
    if (g->us > 0)
        buf_addf(b, " | %.1f us", g->us);
    ratio_tell(b, "eager", g->vs_eager);
    ratio_tell(b, "compile", g->vs_compile);
    ratio_tell(b, "best of PyTorch", g->vs_best);
    if (g->best)
        buf_addz(b, " | best so far");
    if (g->idea[0] != '\0')
        buf_addf(b, " | %.100s", g->idea);
    buf_addz(b, "\n");
}

struct str context_table(struct arena *a, const struct transcript *t)
{
    struct buf b = { .arena = a, .max = TABLE_MAX };
    size_t from = t->n_graded > TABLE_ROWS ? t->n_graded - TABLE_ROWS : 0;
    const struct graded *best = NULL;
    buf_addz(&b, "## What the examiner answered (by the program)\n");
    for (size_t i = 0; i < t->n_graded; i++) {
        if (t->graded[i].best)
            best = &t->graded[i];
        if (i >= from)
            row_tell(&b, &t->graded[i]);
    }
    if (t->n_graded == 0)
        buf_addz(&b, "- nothing was graded yet\n");
    if (best != NULL)
        buf_addf(&b, "The best verified candidate is %.8s of turn %lld; it is kept.\n",
                 best->candidate, (long long)best->turn);
    size_t i;
    const json_t *f;
    buf_addz(&b, "## Files of the workspace\n");
    json_array_foreach(t->files, i, f)
    {
        if (i < 100)
            buf_addf(&b, "- %s, %lld bytes\n", json_string_value(json_object_get(f, "path")),
                     (long long)member_int(f, "size"));
    }
    return (struct str){ b.ptr ? b.ptr : "", b.len };
}

/* ---- where it stands ---- */

struct str context_trailer(struct arena *a, const struct transcript *t, const struct budget *b,
                           const struct totals *now, size_t more)
{
    struct buf out = { .arena = a, .max = 400 };
    double tokens = (double)transcript_tokens(t) + (double)more / t->bytes_per_token;
    double share = tokens / (double)budget_window(b);
    bool due = share >= TRAILER_SHARE;
    for (enum budget_of k = 0; k < BUDGET_KINDS; k++) {
        double limit = budget_limit(b, k);
        due |= limit > 0 && budget_used(now, k) >= BUDGET_WARN * limit;
    }
    if (!due)
        return S("");
    buf_addf(&out, "\n[context %.0f%%", share * 100);
    if (b->turns > 0)
        buf_addf(&out, ", turn %lld/%lld", (long long)now->turns, (long long)b->turns);
    if (b->seconds > 0)
        buf_addf(&out, ", %.0f min left", (b->seconds - now->seconds) / 60);
    if (b->tokens > 0)
        buf_addf(&out, ", %lld of %lld tokens", (long long)(now->input + now->output),
                 (long long)b->tokens);
    if (b->cost > 0)
        buf_addf(&out, ", %.2f of %.2f of the money", now->cost, b->cost);
    buf_addz(&out, "]");
    return (struct str){ out.ptr, out.len };
}
