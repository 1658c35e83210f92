/* tools/tool.h -- what a tool is, for who writes one.
 *
 * A tool is a row: name, description, a table of parameters, a function. The table is the
 * one source: the schema that the model sees is made from it, and arguments are checked
 * against it before the function runs, so that a function finds only what its row allows.
 *
 * What a function raises is told to the model as a refused call: text and hint, no more.
 * A function that has to wait sets `pending` and is called again through `step`.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

enum param_kind { PARAM_TEXT, PARAM_INT, PARAM_FLAG, PARAM_CHOICE, PARAM_LIST };

struct tool_param {
    const char *name, *help; /* help: with the unit */
    enum param_kind kind;
    bool required;
    int64_t min, max;              /* of a number; of a list's items; of a text's bytes. max 0: the
                                      most there is (PARAM_BYTES_MAX, PARAM_ITEMS_MAX, INT64_MAX) */
    const char *const *choices;    /* PARAM_CHOICE: NULL-terminated */
    const struct tool_param *item; /* PARAM_LIST: the members of each of its objects */
    size_t n_item;
};

#define PARAM_BYTES_MAX ((int64_t)1 << 20)
#define PARAM_ITEMS_MAX 100

struct tools;
struct tool;

#define TOOL_CALL_FDS 4

/* One call, from its arguments to its end. A function reads the first part and writes the second.
 */
struct tool_call {
    struct tools *tools;
    void *context;       /* of the row's set */
    const json_t *args;  /* an object, checked against the row */
    struct arena *arena; /* the caller's; lives past the end of the call */

    struct buf text; /* what the model is told; longer than 30,000 bytes: head, tail and a file */
    bool whole;      /* but for this, where the function keeps within bounds itself */
    bool failed;     /* the text tells of a failure */
    bool pending;    /* not done: wait for one of fd, or until the time, then step */
    struct pollfd fd[TOOL_CALL_FDS];
    size_t n_fds;
    int64_t until_ms; /* of clock_ms() */
    void *work;       /* what step and drop need */
    const struct tool *row;
};

struct tool {
    const char *name;
    const char *description; /* for the model: what it does, what it refuses, what it returns */
    const struct tool_param *param;
    size_t n_param;
    bool reads; /* changes neither files nor processes */
    enum err_code (*run)(struct tool_call *c, struct err *err);
    enum err_code (*step)(struct tool_call *c, struct err *err); /* NULL: never pending */
    void (*drop)(struct tool_call *c); /* ends what is pending; only then called */
};

/* Rows with their context. Both borrowed for as long as the session lives. */
struct tool_set {
    const struct tool *row;
    size_t n;
    void *context;
};

/* ---- arguments, by the names of the row ---- */

/* Refuses an unknown parameter, a missing one, a wrong type, a value out of range; the text says
 * what would be right. A whole number may come as 5.0. ERR_USAGE. */
MUST_USE
enum err_code tool_args_check(const struct tool *row, const json_t *args, struct err *err);

/* Of checked arguments: the value, or what stands for an absent one. Text is borrowed. */
struct str arg_text(const json_t *args, const char *name, struct str absent);
int64_t arg_int(const json_t *args, const char *name, int64_t absent);
bool arg_flag(const json_t *args, const char *name, bool absent);
bool arg_given(const json_t *args, const char *name);

/* ---- descriptions ---- */

enum tool_shape { TOOL_OPENAI, TOOL_ANTHROPIC, TOOL_MCP };

/* {"type": "object", "properties": ...}; owned by the caller. */
json_t *tool_schema(const struct tool *row);
/* One row as a list of tools of that shape holds it; owned by the caller. */
json_t *tool_describe(const struct tool *row, enum tool_shape shape);
/* A table in Markdown: tool, parameters, whether it only reads. In the arena. */
struct str tool_table(struct arena *a, const struct tool_set *sets, size_t n);

#endif
