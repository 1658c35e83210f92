/* The fold: from small event arrays; and what lives is what a fold of the log gives, after each
 * event. */
#include "agent/context.h"
#include "tests/agent/script.h"

/* All of the state that somebody goes by. */
static json_t *state_json(const struct transcript *from)
{
    struct transcript *t = (struct transcript *)(uintptr_t)from; /* the prefix is computed late */
    json_t *view = json_array();
    char prefix[SHA256_HEX];
    transcript_prefix(t, prefix);
    for (size_t i = 0; i < t->n_view; i++)
        json_array_append_new(view, json_pack("{s:i, s:o}", "role", t->view[i].role, "parts",
                                              parts_json(t->view[i].parts, t->view[i].n_parts)));
    json_t *graded = json_array();
    for (size_t i = 0; i < t->n_graded; i++)
        json_array_append_new(graded,
                              json_pack("[s, s, f, b]", t->graded[i].candidate, t->graded[i].status,
                                        t->graded[i].us, t->graded[i].best));
    json_t *j =
        json_pack("{s:o, s:s, s:i, s:i, s:i, s:o, s:i, s:i, s:[iiiiii], s:b, s:b, s:s, s:o, s:O}",
                  "view", view, "prefix", prefix, "n", (int)t->n, "bytes", (int)t->bytes, "tokens",
                  (int)transcript_tokens(t), "totals", totals_json(&t->totals), "next",
                  (int)t->next_turn, "last", (int)t->last, "streaks", t->unusable, t->refusals,
                  t->overflows, t->contents, t->loop_nudges, (int)t->n_actions, "nudged", t->nudged,
                  "submitted", t->submitted, "tree", t->tree, "graded", graded, "seen", t->seen);
    assert_non_null(j);
    if (t->best != NULL) {
        json_t *best = json_copy(t->best);
        json_object_del(best, "at"); /* of the line, not of the event */
        json_object_del(best, "v");
        json_object_set_new(j, "best", best);
    }
    if (t->todos != NULL)
        json_object_set_new(j, "todos", json_string(t->todos));
    if (t->status != NULL)
        json_object_set_new(j, "status", json_string(t->status));
    return j;
}

static void fold_all(const json_t *events, struct transcript *t)
{
    struct err err = { 0 };
    size_t i;
    json_t *e;
    transcript_init(t);
    json_array_foreach(events, i, e) fine(transcript_apply(t, e, &err));
}

static int compared;

static void compare(struct world *w, const json_t *event)
{
    struct transcript t;
    own_json events = world_events(w);
    if (w->events == 0 && str_eq(member_text(event, "event"), S("run_start")))
        return; /* comes before prepare has told us of the episode's state */
    fold_all(events, &t);
    own_json folded = state_json(&t);
    own_json lives = state_json(episode_transcript(w->attempt->episode));
    if (!json_equal(folded, lives)) {
        char *p = json_dumps(folded, JSON_SORT_KEYS), *q = json_dumps(lives, JSON_SORT_KEYS);
        fail_msg("after event %lld:\n%.3000s\n%.3000s", (long long)member_int(event, "seq"), p, q);
    }
    transcript_fini(&t);
    compared++;
}

static void lives_as_folded(void **state)
{
    struct world *w = world_new();
    (void)state;
    script_make(w);
    w->on_event = compare;
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "submitted");
    assert_true(compared > 250);
    agent_result_fini(&r);
    world_end(w);
}

/* ---- small arrays ---- */

static json_t *events_of(const char *text)
{
    struct err err = { 0 };
    json_t *j = NULL;
    own_arena tmp = { 0 };
    char *plain = (char *)(uintptr_t)str_z(&tmp, str_from(text));
    for (char *c = plain; *c != '\0'; c++)
        if (*c == '\'')
            *c = '"';
    fine(json_parse(str_from(plain), 1 << 20, &j, &err));
    return j;
}

#define START                                                                                   \
    "{'event':'run_start','seq':0,'system':'be quick','tools':[]},"                             \
    "{'event':'message','seq':1,'index':0,'kind':'task','parts':[{'kind':'text','text':'t'}]}," \
    "{'event':'request','seq':2,'turn':0},"

#define CALL "{'kind':'call','id':'a','name':'Read','args':'{\\'file_path\\':\\'/workspace/x\\'}'}"

static void a_turn(void **state)
{
    struct transcript t;
    (void)state;
    own_json events = events_of(
        "[" START "{'event':'response','seq':3,'turn':0,'index':1,'end':'stop','cost':0.5,"
        "'usage':{'input_total':100,'output_total':7,'estimated':false},'parts':[" CALL "]},"
        "{'event':'tool_end','seq':4,'turn':0,'id':'a','name':'Read','text':'what it holds'},"
        "{'event':'fs','seq':5,'turn':0,'tree':'abc','files':[{'path':'x','hash':'h'}]},"
        "{'event':'turn_end','seq':6,'turn':0,'totals':{'turns':1,'input':100,'output':7}}]");
    fold_all(events, &t);
    assert_int_equal(t.n, 3);
    assert_int_equal(t.last, ANSWER_CALLS);
    assert_int_equal(t.next_turn, 1);
    assert_false(t.flight.open);
    assert_true(str_eq(t.said[2].parts[0].text, S("what it holds")));
    assert_int_equal(t.said[2].turn, 0);
    assert_string_equal(json_string_value(json_object_get(t.seen, "x")), "h");
    assert_int_equal(t.anchor_tokens, 100);
    assert_true(transcript_tokens(&t) > 100);
    transcript_fini(&t);
}

static void dropped(void **state)
{
    struct transcript t;
    (void)state;
    own_json events = events_of(
        "[" START "{'event':'response','seq':3,'turn':0,'index':1,'end':'stop','parts':[" CALL "]},"
        "{'event':'tool_start','seq':4,'turn':0,'id':'a','name':'Read'},"
        "{'event':'resumed','seq':5,'dropped_from':2,'tree':''},"
        "{'event':'request','seq':6,'turn':0},"
        "{'event':'response','seq':7,'turn':0,'index':1,'end':'stop','parts':"
        "[{'kind':'text','text':'other'}]},"
        "{'event':'turn_end','seq':8,'turn':0,'totals':{'turns':1}}]");
    own_json alive = log_alive(events);
    assert_int_equal(json_array_size(alive), 6);
    fold_all(alive, &t);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.last, ANSWER_CONTENT);
    assert_true(str_eq(t.said[1].parts[0].text, S("other")));
    transcript_fini(&t);
}

/* Half a turn is open, and its seq is known: that is where a later process cuts. */
static void in_flight(void **state)
{
    struct transcript t;
    (void)state;
    own_json events = events_of(
        "[" START "{'event':'response','seq':3,'turn':0,'index':1,'end':'stop','parts':[" CALL
        "]}]");
    fold_all(events, &t);
    assert_true(t.flight.open);
    assert_int_equal(t.flight.seq, 2);
    transcript_fini(&t);
}

static void impossible(void **state)
{
    static const char *const rows[] = {
        "[{'event':'message','index':3,'kind':'task','parts':[]}]",
        "[{'event':'message','index':0,'kind':'task','parts':[{'kind':'song'}]}]",
        "[{'event':'tool_end','id':'a','text':'nobody called'}]",
        "[{'event':'context','items':[{'index':0,'part':0,'field':'text','text':''}]}]",
        "[{'event':'fs','tree':'"
        "0123456789012345678901234567890123456789012345678901234567890123456'"
        "}]",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct transcript t;
        struct err err = { 0 };
        own_json events = events_of(rows[i]);
        transcript_init(&t);
        assert_int_equal(transcript_apply(&t, json_array_get(events, 0), &err), ERR_FORMAT);
        transcript_fini(&t);
    }
}

/* Numbers that no program of ours writes do no harm. */
static void huge(void **state)
{
    struct transcript t;
    struct budget b = { .turns = 9 };
    (void)state;
    own_json events = events_of(
        "[" START "{'event':'response','seq':3,'turn':0,'index':-1,'end':'stop','parts':[],'usage':"
        "{'input_total':9223372036854775807,'output_total':-9223372036854775807}},"
        "{'event':'turn_end','turn':9223372036854775807,'totals':{'turns':9223372036854775807}},"
        "{'event':'context','turn':-9223372036854775807,'kind':'mask','before':9223372036854775807,"
        "'after':-9223372036854775807}]");
    fold_all(events, &t);
    context_need(&t, &b);
    own_json drop = context_drop(&t, "reset", 3, S(""));
    assert_non_null(drop);
    transcript_fini(&t);
}

static void shortened(void **state)
{
    struct transcript t;
    char before[SHA256_HEX], after[SHA256_HEX];
    (void)state;
    own_json events = events_of(
        "[" START "{'event':'response','seq':3,'turn':0,'index':1,'end':'stop','parts':[" CALL "]},"
        "{'event':'tool_end','seq':4,'turn':0,'id':'a','name':'Read','text':'a long text'},"
        "{'event':'turn_end','seq':5,'turn':0,'totals':{'turns':1}}]");
    own_json mask = events_of("[{'event':'context','turn':1,'kind':'mask','before':9,'after':5,"
                              "'items':[{'index':2,'part':0,'field':'text','text':'[elided]'}]}]");
    own_json drop = events_of("[{'event':'context','turn':1,'kind':'summary','before':9,'after':5,"
                              "'items':[],'dropped':[0,1,2],'summary':'in short'}]");
    struct err err = { 0 };
    fold_all(events, &t);
    size_t bytes = t.bytes;
    transcript_prefix(&t, before);
    fine(transcript_apply(&t, json_array_get(mask, 0), &err));
    assert_true(str_eq(t.said[2].parts[0].text, S("[elided]")));
    assert_int_equal(t.bytes, bytes - 3);
    transcript_compact(&t);
    assert_true(str_eq(t.view[2].parts[0].text, S("[elided]")));
    transcript_prefix(&t, after);
    assert_string_not_equal(before, after);
    fine(transcript_apply(&t, json_array_get(drop, 0), &err));
    transcript_compact(&t);
    assert_int_equal(t.n_view, 2); /* the task stays, whatever an event says */
    assert_true(str_eq(t.view[1].parts[0].text, S("in short")));
    assert_true(t.reminder_due);
    transcript_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn),          cmocka_unit_test(dropped),   cmocka_unit_test(in_flight),
        cmocka_unit_test(impossible),      cmocka_unit_test(shortened), cmocka_unit_test(huge),
        cmocka_unit_test(lives_as_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
