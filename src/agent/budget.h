/* agent/budget.h -- what an episode may cost, what it has cost, what it will cost. Pure. */
#ifndef AGENT_BUDGET_H
#define AGENT_BUDGET_H

#include <jansson.h>

#include "llm/reply.h"

/* 0: no limit, but for the window. */
struct budget {
    int64_t turns;
    int64_t tokens; /* of all requests and answers */
    double cost;    /* in the prices' currency */
    double seconds; /* of work, over all sittings */
    int64_t window; /* tokens of the conversation with its answer; 0: BUDGET_WINDOW */
};

#define BUDGET_TURNS_DEFAULT 200
#define BUDGET_WINDOW ((int64_t)131072)

/* Of a million tokens. */
struct prices {
    double input, cached, output;
};

struct totals {
    int64_t turns, input, cached, output;
    double cost, seconds;
};

#define BUDGETS(X)              \
    X(BUDGET_OF_TURNS, "turns") \
    X(BUDGET_OF_TOKENS, "tokens") X(BUDGET_OF_COST, "cost") X(BUDGET_OF_SECONDS, "seconds")

enum budget_of {
#define X(id, name) id,
    BUDGETS(X)
#undef X
        BUDGET_KINDS
};

#define BUDGET_WARN 0.8

const char *budget_name(enum budget_of what);
double budget_limit(const struct budget *b, enum budget_of what); /* 0: none */
double budget_used(const struct totals *t, enum budget_of what);
int64_t budget_window(const struct budget *b);

double price_of(const struct prices *p, const struct reply_usage *u);

json_t *totals_json(const struct totals *t); /* a new reference */
struct totals totals_read(const json_t *j);
json_t *budget_json(const struct budget *b);

/* What a turn takes on the average, from past runs or BUDGET_TURN. */
struct turn_mean {
    double input, cached, output, seconds; /* cached: of the input */
};

/* A kernel turn: measured histories grow by 1,200 tokens and are sent again each turn; 9 of 10 of
 * those from a cache. */
#define BUDGET_TURN \
    ((struct turn_mean){ .input = 60000, .cached = 54000, .output = 1000, .seconds = 45 })

struct turn_mean turn_mean_of(const struct totals *t); /* BUDGET_TURN where there were no turns */

struct estimate {
    double turns, tokens, cost, minutes;
    const char *by; /* the budget that ends it first */
};

/* Of one attempt that uses its budget up. */
struct estimate budget_estimate(const struct budget *b, const struct prices *p,
                                const struct turn_mean *mean);

#endif
