/* Which rung this process's boxes stand on: tried once, from the top. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/own.h"
#include "sandbox/box_int.h"

static enum box_choice choice = BOX_BEST;
static int current_rung; /* 0: not known yet */

static enum err_code try_rung(int rung, struct err *err)
{
    static const char *const argv[] = { "/bin/true", NULL }, *const env[] = { NULL };
    struct box_spec spec = { .role = BOX_RUNNER,
                             .argv = argv,
                             .env = env,
                             .channel_fd = -1,
                             .stdin_fd = -1,
                             .out_fd = -1,
                             .err_fd = -1,
                             .tmp_bytes = 1 << 20,
                             .tasks_max = 16 };
    own_arena tmp = { 0 };
    struct box_output out;
    /* Who owns nothing may truncate nothing: a user of its own does without Landlock's newer
     * parts. */
    int least = geteuid() == 0 ? 1 : 3;
    if (rung == 2 && wall_abi() == 0)
        return err_raise(err, ERR_MISSING, "the kernel has no Landlock");
    if (rung == 2 && wall_abi() < least)
        return err_raise(err, ERR_MISSING, "the kernel's Landlock has version %d, %d is the least",
                         wall_abi(), least);
    if (box_run_at(rung, &tmp, &spec, 10000, 4096, &out, err) != OK)
        return err->code;
    if (out.result.end != BOX_EXITED || out.result.status != 0)
        return err_raise(err, ERR_SYSTEM, "a box started but /bin/true ended with %d in it",
                         out.result.status);
    return OK;
}

static void append(char *text, size_t room, const char *fmt, ...) FORMAT(3, 4);

static void append(char *text, size_t room, const char *fmt, ...)
{
    va_list args;
    size_t n = strlen(text);
    va_start(args, fmt);
    vsnprintf(text + n, room - n, fmt, args);
    va_end(args);
}

static enum err_code no_box(const struct err why[4], int last, struct err *err)
{
    bool container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
    err_raise(err, ERR_MISSING, "no box can be had here: ");
    for (int rung = 1; rung <= last; rung++)
        if (why[rung].code != OK)
            append(err->text, sizeof err->text, "%s%s", rung == 1 ? "" : "; ", why[rung].text);
    return err_hint(err, "%s; or --sandbox disposable on a machine that may be thrown away",
                    container ? "start the container with --security-opt seccomp=unconfined "
                                "--security-opt apparmor=unconfined"
                              : "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 "
                                "kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000 "
                                "(keys that your kernel lacks are refused: leave them out)");
}

static void describe(int rung, const struct err why[4], struct box_facts *f)
{
    static const char *const walls[] = { "", "user, mount, pid, ipc, net and uts namespaces",
                                         "Landlock", "no wall" };
    *f = (struct box_facts){ .rung = rung, .limits_by = limit_kind() };
    snprintf(f->detail, sizeof f->detail, "%s; seccomp; memory by %s", walls[rung], f->limits_by);
    for (int above = 1; above < rung; above++)
        if (why[above].code != OK)
            append(f->detail, sizeof f->detail, "; rung %d is not to be had: %s", above,
                   why[above].text);
}

void box_choose(enum box_choice c)
{
    choice = c;
    current_rung = 0;
}

enum err_code box_probe(struct box_facts *ret, struct err *err)
{
    static const struct {
        int first, last;
    } ladder[] = { [BOX_BEST] = { 1, 2 },
                   [BOX_NAMESPACES] = { 1, 1 },
                   [BOX_LANDLOCK] = { 2, 2 },
                   [BOX_DISPOSABLE] = { 1, 3 } };
    static struct box_facts facts;
    struct err why[4] = { 0 };
    int last = ladder[choice].last;
    for (int rung = ladder[choice].first; current_rung == 0 && rung <= last; rung++)
        if (try_rung(rung, &why[rung]) == OK) {
            describe(rung, why, &facts);
            current_rung = rung;
        }
    if (current_rung == 0 && why[last].hint[0] != '\0' && last == 2) { /* it names the mend */
        *err = why[last];
        return err->code;
    }
    if (current_rung == 0)
        return no_box(why, last, err);
    *ret = facts;
    return OK;
}
