/* A conversation as a line of a data set, by the writers of requests. */
#include "agent/export.h"
#include "core/json.h"
#include "llm/request.h"

/* What a data set wants: thinking stays, arguments are the model's own text, nothing is there
 * only for a server. */
static struct compat compat_of_sets(enum dialect dialect)
{
    struct compat c = compat_for(dialect, S(""), S(""));
    c.back = BACK_ALWAYS;
    c.ids = IDS_ANY;
    c.reasoning = 0;
    c.cache_control = false;
    c.developer_role = false;
    c.null_content = false;
    c.args_object = false;
    c.reasoning_empty = false;
    return c;
}

enum err_code export_messages(const struct trace *t, enum dialect dialect, enum trace_view view,
                              FILE *out, struct err *err)
{
    static const char *const kept[] = { "system", "messages", "tools" };
    static const char *const told[] = { "episode", "attempt", "task",      "model",
                                        "status",  "passed",  "truncated", "reward" };
    own_arena a = { 0 };
    own_json body = NULL;
    own_json line = json_object();
    own_json summary = trace_summary(t);
    struct chat chat;
    struct compat compat = compat_of_sets(dialect);
    struct chat_sampling sampling = { .max_tokens = 1 };
    trace_chat(&a, t, view, &chat);
    struct request r = { .dialect = dialect,
                         .model = "",
                         .compat = &compat,
                         .chat = &chat,
                         .sampling = &sampling,
                         .unstreamed = true };
    if (request_write(&r, &body, err) != OK)
        return err_within(err, "messages");
    for (size_t i = 0; i < COUNT(kept); i++)
        if (json_object_get(body, kept[i]) != NULL)
            json_object_set(line, kept[i], json_object_get(body, kept[i]));
    for (size_t i = 0; i < COUNT(told); i++)
        json_object_set(line, told[i], json_object_get(summary, told[i]));
    json_dumpf(line, out, JSON_COMPACT);
    fputc('\n', out);
    return OK;
}
