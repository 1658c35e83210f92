/* An episode's log, whole or cut anywhere: read, and shown in every way that there is. The input:
 * how many bytes of the log are the tokens' file, then the log. */
#include <stdlib.h>

#include "agent/page.h"
#include "core/own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held)
{
    if (!held)
        abort();
}

/* What was written holds nothing that export_plain would have to replace. */
static void must_be_plain(char *text, size_t n)
{
    own_arena a = { 0 };
    struct buf b = { .arena = &a, .max = SIZE_MAX / 4 };
    export_plain(&b, (struct str){ text, n });
    must(str_eq((struct str){ b.ptr, b.len }, (struct str){ text, n }));
    free(text);
}

static void show(const struct trace *t)
{
    static void (*const writers[])(const struct trace *, FILE *) = { export_markdown, page_write };
    struct export_terminal term = { .width = 80 };
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    struct err err = { 0 };
    export_view(t, &term, f);
    for (size_t i = 0; i < t->n_turns; i++)
        if (t->turn[i].numbered)
            must(export_turn(t, t->turn[i].turn, &term, f, &err) == OK);
    fclose(f);
    must_be_plain(text, n);
    for (size_t i = 0; i < COUNT(writers); i++) {
        f = open_memstream(&text, &n);
        writers[i](t, f);
        fclose(f);
        must_be_plain(text, n);
    }
}

static void export(const struct trace *t, struct str tokens)
{
    FILE *f = fopen("/dev/null", "we");
    struct err err = { 0 };
    size_t n;
    must(f != NULL);
    for (int d = DIALECT_OPENAI; d <= DIALECT_ANTHROPIC; d++)
        for (int v = TRACE_REAL; v <= TRACE_SEEN; v++)
            must(export_messages(t, (enum dialect)d, (enum trace_view)v, f, &err) == OK);
    if (export_samples(t, tokens, f, &n, &err) != OK)
        must(err.code == ERR_FORMAT);
    err = (struct err){ 0 };
    if (export_atif(t, tokens, f, &err) != OK)
        must(err.code == ERR_FORMAT);
    own_json summary = trace_summary(t);
    must(json_is_object(summary));
    fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_arena a = { 0 };
    own_trace t = { 0 };
    struct err err = { 0 };
    if (size < 1)
        return 0;
    struct str log = { (const char *)data + 1, size - 1 };
    struct str tokens = { log.ptr, data[0] < log.len ? data[0] : log.len };
    if (trace_parse(&a, log, &t, &err) != OK) {
        must(err.code == ERR_FORMAT && err.text[0] != '\0');
        return 0;
    }
    show(&t);
    export(&t, tokens);
    return 0;
}
