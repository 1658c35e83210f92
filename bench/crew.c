/* What episodes cost: processor time of a turn and memory of an episode that waits, without a model
 * and without a GPU. usage: bench_crew [EPISODES [TURNS [BYTES]]]
 *
 * A recorded model answers each turn with BYTES of text and a Write, a Read and a call of a tool
 * that does nothing; what the tools do for themselves counts, too, and so does the file system
 * below $TMPDIR. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/log.h"
#include "core/json.h"
#include "llm/dump.h"
#include "llm/request.h"
#include "sys/clock.h"
#include "sys/file.h"

struct bench {
    struct arena a;
    int64_t episodes, turns, bytes;
    int64_t asked, at_start_kib, idle_kib;
    double idle_cpu_ms;
    struct tool_set set;
};

static enum err_code nothing(struct tool_call *c, struct err *err)
{
    (void)err;
    buf_addz(&c->text, "done");
    return OK;
}

static const struct tool rows[] = { { .name = "verify", .description = "Nothing.", .run = nothing },
                                    { .name = "submit", .description = "End.", .run = nothing } };

static int64_t resident_kib(void)
{
    own_arena tmp = { 0 };
    struct err err = { 0 };
    struct str text, word;
    int64_t pages = 0;
    if (file_read(&tmp, "/proc/self/statm", 4096, &text, &err) == OK &&
        str_cut(&text, ' ', &word) && str_cut(&text, ' ', &word) &&
        str_int(word, 0, INT64_MAX, &pages, &err) == OK)
        return pages * sysconf(_SC_PAGESIZE) / 1024;
    return 0;
}

static double cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static enum err_code prepare(void *ctx, struct agent_attempt *a, struct tools_spec *ret,
                             struct err *err)
{
    struct bench *b = ctx;
    (void)a, (void)err;
    b->set = (struct tool_set){ rows, COUNT(rows), b };
    ret->set = &b->set;
    ret->n_sets = 1;
    return OK;
}

/* All are open and have asked for the first time: that is what one weighs that waits. */
static void on_event(void *ctx, int attempt, const json_t *event)
{
    struct bench *b = ctx;
    const char *name = json_string_value(json_object_get(event, "event"));
    (void)attempt;
    if (name == NULL || strcmp(name, "request") != 0 || ++b->asked != b->episodes)
        return;
    b->idle_kib = resident_kib();
    b->idle_cpu_ms = cpu_ms();
}

static json_t *part(const char *name, const char *args)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "kind", "call", "id", name, "name", name, "args",
                     args);
}

static enum err_code script(struct bench *b, const char *path, struct err *err)
{
    struct runlog log;
    own_json none = NULL;
    if (runlog_open(&b->a, path, &log, &none, err) != OK)
        return err->code;
    for (int64_t t = 0; t <= b->turns; t++) {
        const char *text = arena_fmt(&b->a, "%0*d", (int)b->bytes / 2, (int)t);
        const char *write = arena_fmt(&b->a, "{\"file_path\":\"k.cu\",\"content\":\"%0*d\"}",
                                      (int)b->bytes / 2, (int)t);
        json_t *parts = json_array();
        json_array_append_new(parts, json_pack("{s:s, s:s}", "kind", "text", "text", text));
        json_array_append_new(parts, part("Write", write));
        json_array_append_new(parts, part("Read", "{\"file_path\":\"k.cu\"}"));
        json_array_append_new(parts, part(t == b->turns ? "submit" : "verify", "{}"));
        json_t *body = json_pack("{s:I, s:s, s:o, s:{s:b}}", "turn", (json_int_t)t, "end", "stop",
                                 "parts", parts, "usage", "estimated", 1);
        if (runlog_put(&log, "response", body, err) != OK)
            break;
    }
    runlog_close(&log);
    return err->code;
}

static enum err_code bench_run(struct bench *b, const char *top, struct err *err)
{
    const char *path = path_join(&b->a, top, "script.jsonl");
    struct agent_hooks hooks = { .ctx = b, .prepare = prepare, .on_event = on_event };
    struct agent_config config = { .out = path_join(&b->a, top, "out"),
                                   .task_text = S("Make it fast."),
                                   .model_log = path,
                                   .model_log_ms = b->episodes * 6,
                                   .unsynced = true,
                                   .budget = { .turns = b->turns + 10 },
                                   .hooks = &hooks };
    struct agent_result r = { 0 };
    if (script(b, path, err) != OK)
        return err->code;
    b->at_start_kib = resident_kib();
    if (agent_run(&config, (int)b->episodes, &b->a, &r, err) != OK)
        return err->code;
    int64_t good = 0, turns = 0;
    for (int i = 0; i < r.n; i++) {
        good += strcmp(r.attempt[i].status, "submitted") == 0;
        turns += r.attempt[i].totals.turns;
    }
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("%lld episodes (%lld submitted) of %lld turns, %lld bytes a turn\n",
           (long long)b->episodes, (long long)good, (long long)b->turns + 1, (long long)b->bytes);
    printf("opening        %8.3f ms of processor an episode\n",
           b->idle_cpu_ms / (double)b->episodes);
    printf("waiting        %8.1f KiB an episode\n",
           (double)(b->idle_kib - b->at_start_kib) / (double)b->episodes);
    printf("a turn         %8.3f ms of processor, its three calls included\n",
           (cpu_ms() - b->idle_cpu_ms) / (double)turns);
    printf("largest        %8.1f KiB an episode, conversation included\n",
           (double)(u.ru_maxrss - b->at_start_kib) / (double)b->episodes);
    agent_result_fini(&r);
    return OK;
}

/* The body of a request is written anew each turn: by the loop of llm, not by an episode. */
static enum err_code request_time(struct bench *b, struct err *err)
{
    enum { PAIRS = 100, TEXT = 2000, TIMES = 50 };
    struct compat compat = compat_for(DIALECT_OPENAI, S("http://127.0.0.1"), S("m"));
    struct chat_message *m = arena_new(&b->a, struct chat_message, 2 * PAIRS);
    struct chat_part *p = arena_new(&b->a, struct chat_part, 2 * PAIRS);
    struct str text = str_from(arena_fmt(&b->a, "%0*d", TEXT, 1));
    for (int i = 0; i < 2 * PAIRS; i++) {
        p[i] = (struct chat_part){ .kind = CHAT_TEXT, .text = text };
        m[i] = (struct chat_message){ i % 2 ? CHAT_ASSISTANT : CHAT_USER, .parts = &p[i],
                                      .n_parts = 1 };
    }
    struct chat chat = { .messages = m, .n_messages = 2 * PAIRS };
    struct chat_sampling sampling = { .max_tokens = 1000 };
    struct request r = { DIALECT_OPENAI, "m", &compat, &chat, &sampling, false };
    double before = cpu_ms();
    size_t bytes = 0;
    for (int i = 0; i < TIMES; i++) {
        own_json body = NULL;
        if (request_write(&r, &body, err) != OK)
            return err->code;
        own_mem char *out = json_bytes(body);
        bytes = out ? strlen(out) : 0;
    }
    printf("a request body %8.3f ms of processor for %zu KiB (llm's, once a turn)\n",
           (cpu_ms() - before) / TIMES, bytes >> 10);
    return OK;
}

int main(int argc, char **argv)
{
    struct bench b = { .episodes = 1000, .turns = 20, .bytes = 2000 };
    int64_t *const to[] = { &b.episodes, &b.turns, &b.bytes };
    struct err err = { 0 };
    const char *top = NULL, *temp = getenv("TMPDIR");
    for (int i = 1; i < argc && i <= (int)COUNT(to); i++)
        if (str_int(str_from(argv[i]), 1, 1000000, to[i - 1], &err) != OK)
            break;
    if (err.code == OK && dir_temp(&b.a, temp ? temp : "/tmp", "ca-crew", &top, &err) == OK) {
        struct err ignored = { 0 };
        if (bench_run(&b, top, &err) == OK && request_time(&b, &err) != OK)
            fprintf(stderr, "no request\n");
        if (dir_remove(top, &ignored) != OK)
            fprintf(stderr, "%s\n", ignored.text);
    }
    if (err.code != OK)
        fprintf(stderr, "%s\n", err.text);
    arena_fini(&b.a);
    return err_exit_status(err.code);
}
