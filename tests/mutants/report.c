/* What came of it: a table of faults, one of right ways. */
#include "mutants/mutants.h"

static void row_print(FILE *f, const char *name, const struct rule *t)
{
    int64_t real = t->made - t->equivalent;
    if (t->made > 0)
        fprintf(f, "| %s | %lld | %lld | %lld | %lld | %lld | %lld | %.2f%% |\n", name,
                (long long)t->made, (long long)t->equivalent, (long long)t->by_check,
                (long long)t->by_class, (long long)t->by_time, (long long)t->lived,
                real > 0 ? 100.0 * (double)t->lived / (double)real : 0);
}

static void add(struct rule *to, const struct rule *r)
{
    to->made += r->made;
    to->equivalent += r->equivalent;
    to->by_check += r->by_check;
    to->by_class += r->by_class;
    to->by_time += r->by_time;
    to->lived += r->lived;
}

/* One row for each name, over all kernels. */
static void table(struct run *r, FILE *f, bool honest, struct rule *all)
{
    fprintf(f, honest
                   ? "| right way | made | | | | | refused | share |\n"
                   : "| fault | made | same bits | dead by the check | by a lower class | by the "
                     "timed windows | alive | share |\n");
    fprintf(f, "|---|---|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < r->n_kernels; k++)
        for (size_t i = 0; i < r->kernel[k].n_rules; i++) {
            const struct rule *first = &r->kernel[k].rule[i];
            struct rule sum = { 0 };
            bool seen = false;
            for (size_t o = 0; o < r->n_kernels; o++)
                for (size_t j = 0; j < r->kernel[o].n_rules; j++) {
                    const struct rule *it = &r->kernel[o].rule[j];
                    if (it->honest != honest || strcmp(it->name, first->name) != 0)
                        continue;
                    seen = seen || o < k || (o == k && j < i);
                    add(&sum, it);
                }
            if (first->honest != honest || seen)
                continue;
            row_print(f, first->name, &sum);
            add(all, &sum);
        }
    row_print(f, "**all**", all);
}

int64_t report(struct run *r, const char *path)
{
    struct rule faults = { 0 }, honest = { 0 };
    FILE *f = path ? fopen(path, "w") : stdout;
    if (f == NULL)
        f = stdout;
    table(r, f, false, &faults);
    fprintf(f, "\n");
    table(r, f, true, &honest);
    if (f != stdout)
        fclose(f);
    int64_t real = faults.made - faults.equivalent;
    printf("%lld of %lld mutants live, %lld of %lld right variants are refused\n",
           (long long)faults.lived, (long long)real, (long long)honest.lived,
           (long long)honest.made);
    int64_t bad = faults.lived + honest.lived;
    printf("%lld passed, %lld failed\n", (long long)(real + honest.made - bad), (long long)bad);
    return bad;
}
