/* Answers and circles; budgets. Pure functions, a row a case. */
#include "agent/budget.h"
#include "agent/guard.h"
#include "tests/agent/world.h"

static void answers_are_told_apart(void **state)
{
    static const struct {
        const char *response;
        enum answer want;
    } rows[] = {
        { "{\"end\":\"stop\",\"parts\":[{\"kind\":\"call\",\"name\":\"X\",\"args\":\"{}\"}]}",
          ANSWER_CALLS },
        { "{\"end\":\"stop\",\"parts\":[{\"kind\":\"call\",\"name\":\"X\",\"args\":\"\"}]}",
          ANSWER_CALLS },
        { "{\"end\":\"stop\",\"parts\":[{\"kind\":\"call\",\"name\":\"X\",\"args\":\"{\"}]}",
          ANSWER_BROKEN },
        { "{\"end\":\"stop\",\"parts\":[{\"kind\":\"call\",\"name\":\"X\",\"args\":\"[]\"}]}",
          ANSWER_BROKEN },
        { "{\"end\":\"stop\",\"parts\":[{\"kind\":\"call\",\"name\":\"X\",\"args\":\"{\"},"
          "{\"kind\":\"call\",\"name\":\"X\",\"args\":\"{}\"}]}",
          ANSWER_CALLS },
        { "{\"end\":\"stop\",\"parts\":[{\"kind\":\"text\",\"text\":\"done\"}]}", ANSWER_CONTENT },
        { "{\"end\":\"stop\",\"parts\":[{\"kind\":\"text\",\"text\":\" \\n\"}]}", ANSWER_EMPTY },
        { "{\"end\":\"stop\",\"parts\":[{\"kind\":\"thinking\",\"text\":\"hm\"}]}",
          ANSWER_THINKING },
        { "{\"end\":\"stop\",\"parts\":[]}", ANSWER_EMPTY },
        { "{\"end\":\"length\",\"parts\":[{\"kind\":\"text\",\"text\":\"x\"}]}", ANSWER_LENGTH },
        { "{\"end\":\"context\",\"parts\":[]}", ANSWER_OVERFLOW },
        { "{\"end\":\"failed\",\"fault\":{\"kind\":\"context\"},\"parts\":[]}", ANSWER_OVERFLOW },
        { "{\"end\":\"failed\",\"fault\":{\"kind\":\"auth\"},\"parts\":[]}", ANSWER_FAILED },
        { "{\"end\":\"cut\",\"parts\":[]}", ANSWER_FAILED },
        { "{\"end\":\"refused\",\"parts\":[{\"kind\":\"text\",\"text\":\"I can't\"}]}",
          ANSWER_REFUSED },
        { "{\"end\":\"paused\",\"parts\":[{\"kind\":\"text\",\"text\":\"...\"}]}", ANSWER_PAUSED },
        { "{\"end\":\"stop\",\"notes\":[\"markup\"],\"parts\":[{\"kind\":\"text\",\"text\":\"<tool"
          "\"}]}",
          ANSWER_MARKUP },
        { "{\"end\":\"stop\",\"purpose\":\"summary\",\"parts\":[]}", ANSWER_SUMMARY },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 };
        own_json j = NULL;
        fine(json_parse(str_from(rows[i].response), 10000, &j, &err));
        if (answer_of(j) != rows[i].want)
            fail_msg("%s is '%s', wanted '%s'", rows[i].response, answer_name(answer_of(j)),
                     answer_name(rows[i].want));
    }
}

/* A letter a call, a digit for what it gave: "a1 a1 a1"; '!': it failed; '+': the files changed
 * before it; 'w': it waits. */
static enum loop loop_in(const char *text)
{
    struct action a[ACTIONS_MAX * 2];
    size_t n = 0;
    uint64_t tree = 1;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c >= 'a' && *c <= 'z')
            a[n++] = (struct action){ .call = (uint64_t)*c, .tree = tree, .waits = *c == 'w' };
        else if (*c >= '0' && *c <= '9')
            a[n - 1].result = (uint64_t)*c;
        else if (*c == '!')
            a[n - 1].failed = true;
        else if (*c == '+')
            tree++;
    }
    return loop_find(a, n);
}

static void circles(void **state)
{
    static const struct {
        const char *text;
        enum loop want;
    } rows[] = {
        { "", LOOP_NONE },
        { "a1", LOOP_NONE },
        { "a1 a1", LOOP_NONE },
        { "a1 a1 a1", LOOP_NEAR },
        { "a1 a1 a1 a1", LOOP_FOUND },
        { "+a1 +a1 +a1 +a1", LOOP_FOUND },        /* what changed made no difference */
        { "+a1 +a2 +a3 +a4 +a5 +a6", LOOP_NONE }, /* measuring what changes */
        { "a1 a2 a3", LOOP_NONE },                /* noise, looked at thrice */
        { "a1 a2 a3 a4", LOOP_NEAR },
        { "a1 a2 b1 a3 a4 a5", LOOP_FOUND }, /* the fifth time on the same files */
        { "a1! a2! a3!", LOOP_NEAR },
        { "+a1! +a2! +a3! +a4!", LOOP_FOUND },
        { "a1 b1 a1 b1", LOOP_NONE },
        { "+a1 +b1 +a1 +b1 +a1 +b1", LOOP_NEAR },
        { "+a1 +b1 +a1 +b1 +a1 +b1 +a1 +b1", LOOP_FOUND },
        { "a1 a1 a1 b1", LOOP_NONE }, /* it has changed its way */
        { "w1 w1 w1 w1 w1 w1", LOOP_NONE },
        { "w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1", LOOP_NEAR },
        { "w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1", LOOP_FOUND },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (loop_in(rows[i].text) != rows[i].want)
            fail_msg("'%s' gives %d, wanted %d", rows[i].text, loop_in(rows[i].text), rows[i].want);
}

static void near_to(double got, double want)
{
    if (!(got > want - 1e-6 && got < want + 1e-6))
        fail_msg("%g, wanted %g", got, want);
}

static void estimates(void **state)
{
    struct turn_mean mean = { .input = 10000, .cached = 8000, .output = 1000, .seconds = 30 };
    struct prices prices = { .input = 3, .cached = 0.3, .output = 15 };
    struct budget b = { .turns = 100 };
    (void)state;
    struct estimate e = budget_estimate(&b, &prices, &mean);
    near_to(e.turns, 100);
    near_to(e.tokens, 1.1e6);
    near_to(e.cost, 100 * (2000 * 3 + 8000 * 0.3 + 1000 * 15) / 1e6);
    near_to(e.minutes, 50);
    assert_string_equal(e.by, "turns");
    b.seconds = 600;
    e = budget_estimate(&b, &prices, &mean);
    near_to(e.turns, 20);
    assert_string_equal(e.by, "seconds");
    struct reply_usage u = { .input_total = 1000000,
                             .input_cached = 500000,
                             .output_total = 100000 };
    near_to(price_of(&prices, &u), 1.5 + 0.15 + 1.5);
    struct totals none = { 0 }, some = { .turns = 2, .input = 10, .output = 4, .seconds = 6 };
    near_to(turn_mean_of(&none).input, BUDGET_TURN.input);
    near_to(turn_mean_of(&some).seconds, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(answers_are_told_apart),
                                        cmocka_unit_test(circles), cmocka_unit_test(estimates) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
