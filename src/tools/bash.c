/* Bash, BashOutput, KillShell. */
#include <stdio.h>
#include <unistd.h>

#include "core/own.h"
#include "sys/clock.h"
#include "tools/regex.h"
#include "tools/shell.h"

#define FILTER_MS 3000           /* then lines are told that the filter was not asked about */
#define COMMAND_BYTES_MAX 100000 /* an argument of a program has 131,072 at most */

/* ---- the background ---- */

void tools_pump(struct tools *t)
{
    for (size_t i = 0; i < TOOLS_SHELLS_MAX; i++)
        if (t->shell[i] != NULL)
            shell_pump(t->shell[i]);
}

size_t tools_running(const struct tools *t)
{
    size_t n = 0;
    for (size_t i = 0; i < TOOLS_SHELLS_MAX; i++)
        n += t->shell[i] != NULL && t->shell[i]->box != NULL;
    return n;
}

static size_t shell_fds(const struct shell *s, struct pollfd *ret)
{
    size_t n = 0;
    if (s->box == NULL)
        return 0;
    ret[n++] = (struct pollfd){ .fd = box_end_fd(s->box), .events = POLLIN };
    if (s->out >= 0)
        ret[n++] = (struct pollfd){ .fd = s->out, .events = POLLIN };
    return n;
}

size_t tools_fds(const struct tools *t, struct pollfd ret[2 * TOOLS_SHELLS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < TOOLS_SHELLS_MAX; i++)
        if (t->shell[i] != NULL)
            n += shell_fds(t->shell[i], ret + n);
    return n;
}

/* A place for one more: a free one, else that of a command whose end was told, else of any that
 * has ended. NULL: all run. */
static struct shell **slot_for_new(struct tools *t)
{
    struct shell **ended = NULL;
    for (size_t i = 0; i < TOOLS_SHELLS_MAX; i++) {
        struct shell **s = &t->shell[i];
        if (*s == NULL)
            return s;
        bool better = ended == NULL || (!(*ended)->told && (*s)->told);
        if ((*s)->box == NULL && better)
            ended = s;
    }
    if (ended != NULL) {
        shell_free(*ended);
        *ended = NULL;
    }
    return ended;
}

static void list_shells(const struct tools *t, struct buf *b)
{
    for (size_t i = 0; i < TOOLS_SHELLS_MAX; i++) {
        const struct shell *s = t->shell[i];
        if (s == NULL)
            continue;
        buf_addf(b, "bash_%d (", s->serial);
        if (s->box != NULL)
            buf_addf(b, "running for %.0f s", (double)(clock_ms() - s->started_ms) / 1000);
        else
            shell_ending(s, b);
        buf_addz(b, "): ");
        struct str line = str_from(s->command), first = { 0 };
        str_cut(&line, '\n', &first);
        text_plain(b, first);
        buf_addz(b, "\n");
    }
}

struct str tools_reminder(const struct tools *t, struct arena *a)
{
    struct buf b = { .arena = a, .max = 65536 }, shells = { .arena = a, .max = 8192 };
    todo_text(t, &b);
    list_shells(t, &shells);
    if (shells.len > 0)
        buf_addf(&b, "Background commands:\n%s", shells.ptr);
    return (struct str){ b.ptr ? b.ptr : "", b.len };
}

static enum err_code start_behind(struct tool_call *c, struct str command, struct err *err)
{
    struct tools *t = c->tools;
    struct shell **slot = slot_for_new(t);
    if (slot == NULL) {
        own_arena tmp = { 0 };
        struct buf b = { .arena = &tmp, .max = 400 };
        list_shells(t, &b);
        err_raise(err, ERR_USAGE, "%d commands run in the background, which is the most",
                  TOOLS_SHELLS_MAX);
        return err_hint(err, "end one with KillShell\n%s", b.ptr ? b.ptr : "");
    }
    if (shell_start(t, c->arena, command, true, slot, err) != OK)
        return err->code;
    (*slot)->until_ms = clock_ms() + BACKGROUND_MS;
    buf_addf(&c->text,
             "Started in the background as bash_%d. BashOutput tells what it says, "
             "KillShell ends it.",
             (*slot)->serial);
    return OK;
}

/* ---- Bash ---- */

static void wait_for(struct tool_call *c)
{
    struct shell *s = c->work;
    c->pending = true;
    c->n_fds = shell_fds(s, c->fd);
    c->until_ms = s->until_ms;
}

static enum err_code bash_run(struct tool_call *c, struct err *err)
{
    struct str command = arg_text(c->args, "command", S(""));
    if (arg_flag(c->args, "run_in_background", false))
        return start_behind(c, command, err);
    struct shell *s = NULL;
    if (shell_start(c->tools, c->arena, command, false, &s, err) != OK)
        return err->code;
    s->until_ms = s->started_ms + arg_int(c->args, "timeout", BASH_MS);
    c->work = s;
    wait_for(c);
    return OK;
}

static void bash_drop(struct tool_call *c)
{
    shell_free(c->work);
    c->work = NULL;
}

/* Output, then one line about the end. */
static void bash_tell(struct tool_call *c, struct shell *s)
{
    struct err frozen = { 0 };
    c->whole = true;
    gather_tell(&s->gather, &c->text, true);
    if (c->text.len > 0 && c->text.ptr[c->text.len - 1] != '\n')
        buf_addz(&c->text, "\n");
    buf_addz(&c->text, "[");
    shell_ending(s, &c->text);
    if (s->failure == NULL && s->result.end == BOX_TIMED_OUT)
        buf_addz(&c->text, ": the timeout. Give more (timeout, ms), or run it in the background");
    if (shell_cwd(c->tools))
        buf_addf(&c->text, "; now in %s", c->tools->cwd);
    buf_addz(&c->text, "]");
    if (tools_frozen_check(c->tools, &frozen) != OK)
        buf_addf(&c->text, "\n[%s]", frozen.text);
    c->failed =
        s->failure != NULL || s->result.end == BOX_TIMED_OUT || s->result.end == BOX_OUT_OF_MEMORY;
}

static enum err_code bash_step(struct tool_call *c, struct err *err)
{
    struct shell *s = c->work;
    (void)err;
    shell_pump(s);
    if (s->box != NULL) {
        wait_for(c);
        return OK;
    }
    c->pending = false;
    bash_tell(c, s);
    bash_drop(c);
    return OK;
}

/* ---- BashOutput, KillShell ---- */

static enum err_code shell_find(struct tool_call *c, const char *arg, struct shell ***ret,
                                struct err *err)
{
    struct str id = arg_text(c->args, arg, S(""));
    own_arena tmp = { 0 };
    for (size_t i = 0; i < TOOLS_SHELLS_MAX; i++) {
        struct shell **s = &c->tools->shell[i];
        if (*s != NULL && str_eq(id, str_from(arena_fmt(&tmp, "bash_%d", (*s)->serial)))) {
            *ret = s;
            return OK;
        }
    }
    struct buf b = { .arena = &tmp, .max = 400 };
    list_shells(c->tools, &b);
    err_raise(err, ERR_USAGE, "there is no background command '%.*s'",
              (int)(id.len < 60 ? id.len : 60), id.ptr);
    return err_hint(err, "%s", b.len > 0 ? b.ptr : "none was started, or its end was told already");
}

static enum err_code tell_lines(struct tool_call *c, struct str out, struct err *err)
{
    struct str filter = arg_text(c->args, "filter", S("")), line;
    own_regex re = { 0 };
    if (filter.len == 0) {
        text_terminal(&c->text, out);
        return OK;
    }
    if (regex_make(filter, REGEX_PLAIN, &re, err) != OK)
        return err_within(err, "filter");
    for (int64_t until = clock_ms() + FILTER_MS; str_cut(&out, '\n', &line);) {
        struct span at;
        if (clock_ms() > until || regex_find(&re, line, 0, &at) != REGEX_NO) {
            text_terminal(&c->text, line);
            buf_addz(&c->text, "\n");
        }
    }
    return OK;
}

static enum err_code output_run(struct tool_call *c, struct err *err)
{
    struct shell **slot = NULL;
    struct err frozen = { 0 };
    uint64_t lost = 0;
    if (shell_find(c, "bash_id", &slot, err) != OK)
        return err->code;
    struct shell *s = *slot;
    shell_pump(s);
    struct ring before = s->ring;
    struct str out = ring_take(&s->ring, c->arena, &lost);
    if (lost > 0)
        buf_addf(&c->text, "[%llu bytes are lost: too much came since the last look]\n",
                 (unsigned long long)lost);
    if (tell_lines(c, out, err) != OK) {
        s->ring = before; /* a bad filter loses nothing */
        return err->code;
    }
    if (c->text.len > 0 && c->text.ptr[c->text.len - 1] != '\n')
        buf_addz(&c->text, "\n");
    buf_addz(&c->text, out.len == 0 ? "[nothing new; " : "[");
    if (s->box != NULL)
        buf_addf(&c->text, "running for %.1f s]", (double)(clock_ms() - s->started_ms) / 1000);
    else {
        shell_ending(s, &c->text);
        buf_addz(&c->text, "]");
        s->told = true;
    }
    if (s->box == NULL && tools_frozen_check(c->tools, &frozen) != OK)
        buf_addf(&c->text, "\n[%s]", frozen.text);
    return OK;
}

static enum err_code kill_run(struct tool_call *c, struct err *err)
{
    struct shell **slot = NULL;
    struct err frozen = { 0 };
    if (shell_find(c, "shell_id", &slot, err) != OK)
        return err->code;
    bool ran = (*slot)->box != NULL;
    uint64_t lost = 0;
    shell_kill(*slot);
    text_terminal(&c->text, ring_take(&(*slot)->ring, c->arena, &lost));
    if (c->text.len > 0 && c->text.ptr[c->text.len - 1] != '\n')
        buf_addz(&c->text, "\n");
    buf_addf(&c->text, "[bash_%d %s: ", (*slot)->serial, ran ? "was running" : "had ended");
    shell_ending(*slot, &c->text);
    buf_addz(&c->text, "]");
    shell_free(*slot);
    *slot = NULL;
    if (tools_frozen_check(c->tools, &frozen) != OK)
        buf_addf(&c->text, "\n[%s]", frozen.text);
    return OK;
}

static const struct tool_param bash_params[] = {
    { .name = "command",
      .help = "What bash runs. Its standard input is empty.",
      .kind = PARAM_TEXT,
      .required = true,
      .min = 1,
      .max = COMMAND_BYTES_MAX },
    { .name = "timeout",
      .help = "Milliseconds until it is killed; 120000 when left out.",
      .kind = PARAM_INT,
      .min = 1,
      .max = BASH_MS_MAX },
    { .name = "description", .help = "What it is for, in five to ten words.", .kind = PARAM_TEXT },
    { .name = "run_in_background",
      .help = "Return at once; BashOutput tells the rest.",
      .kind = PARAM_FLAG },
};

static const struct tool_param output_params[] = {
    { .name = "bash_id",
      .help = "The name that Bash returned: bash_1.",
      .kind = PARAM_TEXT,
      .required = true },
    { .name = "filter",
      .help = "Tell only lines that match this regular expression; the others are gone.",
      .kind = PARAM_TEXT },
};

static const struct tool_param kill_params[] = {
    { .name = "shell_id",
      .help = "The name that Bash returned: bash_1.",
      .kind = PARAM_TEXT,
      .required = true },
};

const struct tool shell_tools[SHELL_TOOLS] = {
    { .name = "Bash",
      .description = "Run a command in bash, in the workspace, without network and without GPU. cd "
                     "lasts from call to "
                     "call, variables do not. Everything that the command started ends with it, "
                     "also what was put in "
                     "the background with & or nohup: run_in_background is the way to let "
                     "something go on. Long output "
                     "is cut in the middle and kept whole in a file that the result names. The "
                     "last line tells the exit "
                     "code.",
      .param = bash_params,
      .n_param = COUNT(bash_params),
      .run = bash_run,
      .step = bash_step,
      .drop = bash_drop },
    { .name = "BashOutput",
      .description =
          "What a background command has said since the last look, and whether it still runs.",
      .param = output_params,
      .n_param = COUNT(output_params),
      .reads = true,
      .run = output_run },
    { .name = "KillShell",
      .description = "End a background command and all that it started.",
      .param = kill_params,
      .n_param = COUNT(kill_params),
      .run = kill_run },
};
