#include "agent/budget.h"

#include "agent/parts.h"

const char *budget_name(enum budget_of what)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        BUDGETS(X)
#undef X
    };
    return names[what];
}

double budget_limit(const struct budget *b, enum budget_of what)
{
    double limit[BUDGET_KINDS] = { [BUDGET_OF_TURNS] = (double)b->turns,
                                   [BUDGET_OF_TOKENS] = (double)b->tokens,
                                   [BUDGET_OF_COST] = b->cost,
                                   [BUDGET_OF_SECONDS] = b->seconds };
    return limit[what];
}

double budget_used(const struct totals *t, enum budget_of what)
{
    double used[BUDGET_KINDS] = { [BUDGET_OF_TURNS] = (double)t->turns,
                                  [BUDGET_OF_TOKENS] = (double)(t->input + t->output),
                                  [BUDGET_OF_COST] = t->cost,
                                  [BUDGET_OF_SECONDS] = t->seconds };
    return used[what];
}

int64_t budget_window(const struct budget *b)
{
    return b->window > 0 ? b->window : BUDGET_WINDOW;
}

static double price(const struct prices *p, double input, double cached, double output)
{
    return ((input - cached) * p->input + cached * p->cached + output * p->output) / 1e6;
}

double price_of(const struct prices *p, const struct reply_usage *u)
{
    return price(p, (double)u->input_total, (double)u->input_cached, (double)u->output_total);
}

json_t *totals_json(const struct totals *t)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:f}", "turns", (json_int_t)t->turns, "input",
                     (json_int_t)t->input, "cached", (json_int_t)t->cached, "output",
                     (json_int_t)t->output, "cost", t->cost, "seconds", t->seconds);
}

struct totals totals_read(const json_t *j)
{
    return (struct totals){ .turns = member_int(j, "turns"),
                            .input = member_int(j, "input"),
                            .cached = member_int(j, "cached"),
                            .output = member_int(j, "output"),
                            .cost = json_number_value(json_object_get(j, "cost")),
                            .seconds = json_number_value(json_object_get(j, "seconds")) };
}

json_t *budget_json(const struct budget *b)
{
    return json_pack("{s:I, s:I, s:f, s:f, s:I}", "turns", (json_int_t)b->turns, "tokens",
                     (json_int_t)b->tokens, "cost", b->cost, "seconds", b->seconds, "window",
                     (json_int_t)budget_window(b));
}

struct turn_mean turn_mean_of(const struct totals *t)
{
    double n = (double)t->turns;
    if (t->turns <= 0)
        return BUDGET_TURN;
    return (struct turn_mean){ .input = (double)t->input / n,
                               .cached = (double)t->cached / n,
                               .output = (double)t->output / n,
                               .seconds = t->seconds / n };
}

struct estimate budget_estimate(const struct budget *b, const struct prices *p,
                                const struct turn_mean *mean)
{
    struct estimate e = { .turns = BUDGET_TURNS_DEFAULT, .by = "turns" };
    double each[BUDGET_KINDS] = { [BUDGET_OF_TURNS] = 1,
                                  [BUDGET_OF_TOKENS] = mean->input + mean->output,
                                  [BUDGET_OF_COST] =
                                      price(p, mean->input, mean->cached, mean->output),
                                  [BUDGET_OF_SECONDS] = mean->seconds };
    if (b->turns > 0)
        e.turns = (double)b->turns;
    for (enum budget_of k = 0; k < BUDGET_KINDS; k++) {
        double limit = budget_limit(b, k);
        if (limit <= 0 || each[k] <= 0 || limit / each[k] >= e.turns)
            continue;
        e.turns = limit / each[k];
        e.by = budget_name(k);
    }
    e.tokens = e.turns * each[BUDGET_OF_TOKENS];
    e.cost = e.turns * each[BUDGET_OF_COST];
    e.minutes = e.turns * each[BUDGET_OF_SECONDS] / 60;
    return e;
}
