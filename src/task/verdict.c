#include "task/verdict.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const status_names[] = {
#define X(id, name) [id] = name,
    VERDICT_STATUSES(X)
#undef X
};

static const char *const precision_names[] = {
#define X(id, name) [id] = name,
    PRECISIONS(X)
#undef X
};

static const struct {
    const char *name;
    double tol;
} presets[] = {
#define X(id, name, tol) [id] = { name, tol },
    PRESETS(X)
#undef X
};

bool verdict_right(const struct verdict *v)
{
    return v->status == VERDICT_PASS || v->status == VERDICT_UNDECIDED;
}

const char *verdict_status_name(enum verdict_status s)
{
    return status_names[s];
}

const char *precision_name(enum precision p)
{
    return precision_names[p];
}

const char *preset_name(enum preset p)
{
    return presets[p].name;
}

double preset_tol(enum preset p)
{
    return presets[p].tol;
}

void verdict_note(struct verdict *v, const char *fmt, ...)
{
    va_list args;
    if (v->n_notes >= NOTES_MAX)
        return;
    va_start(args, fmt);
    int want = vsnprintf(v->note[v->n_notes], sizeof v->note[0], fmt, args);
    va_end(args);
    if (want >= (int)sizeof v->note[0])
        memcpy(v->note[v->n_notes] + sizeof v->note[0] - 4, "...", 4);
    str_plain(v->note[v->n_notes]);
    v->n_notes++;
}
