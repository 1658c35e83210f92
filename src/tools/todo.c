/* TodoWrite: the list of what is to be done, whole each time. */
#include "tools/text.h"
#include "tools/tools_int.h"

static const char *const states[] = { "pending", "in_progress", "completed", NULL };

static const struct tool_param item[] = {
    { .name = "content",
      .help = "What is to be done.",
      .kind = PARAM_TEXT,
      .required = true,
      .min = 1,
      .max = 500 },
    { .name = "status",
      .help = "Where it stands.",
      .kind = PARAM_CHOICE,
      .required = true,
      .choices = states },
    { .name = "activeForm",
      .help = "The same as something under way: \"Tiling the loop\".",
      .kind = PARAM_TEXT,
      .max = 500 },
};

static const struct tool_param params[] = {
    { .name = "todos",
      .help = "The whole list, as it is from now on.",
      .kind = PARAM_LIST,
      .required = true,
      .max = 50,
      .item = item,
      .n_item = COUNT(item) },
};

static size_t count(const json_t *todos, const char *status)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(todos); i++)
        n += str_eq(arg_text(json_array_get(todos, i), "status", S("")), str_from(status));
    return n;
}

static enum err_code run(struct tool_call *c, struct err *err)
{
    json_t *todos = json_object_get(c->args, "todos");
    size_t busy = count(todos, "in_progress");
    if (busy > 1)
        return err_raise(err, ERR_USAGE, "%zu items are in_progress: work at one at a time", busy);
    json_decref(c->tools->todos);
    c->tools->todos = json_deep_copy(todos);
    buf_addf(&c->text, "Kept: %zu completed, %zu in progress, %zu pending.",
             count(todos, "completed"), busy, count(todos, "pending"));
    return OK;
}

void todo_text(const struct tools *t, struct buf *b)
{
    static const char *const marks[] = { "[ ]", "[>]", "[x]" };
    for (size_t i = 0; i < json_array_size(t->todos); i++) {
        const json_t *one = json_array_get(t->todos, i);
        struct str status = arg_text(one, "status", S(""));
        size_t k = 0;
        while (k + 1 < COUNT(marks) && !str_eq(status, str_from(states[k])))
            k++;
        buf_addf(b, "%s%s ", i == 0 ? "To do:\n" : "", marks[k]);
        text_plain(b, arg_text(one, "content", S("")));
        buf_addz(b, "\n");
    }
}

const struct tool todo_tool = {
    .name = "TodoWrite",
    .description =
        "Keep a list of what is to be done, for work of three steps and more. Give the whole "
        "list each time; one item at most is in_progress.",
    .param = params,
    .n_param = COUNT(params),
    .run = run,
};
