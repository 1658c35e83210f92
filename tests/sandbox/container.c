/* Run a program as a default container does: namespaces and mounts are refused by a filter.
 *
 *   container [--no-landlock] PROGRAM [ARGUMENT...]
 *
 * --no-landlock: as on a kernel that was built without it.
 */
#include <errno.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int refused[] = { SCMP_SYS(unshare),   SCMP_SYS(setns),      SCMP_SYS(mount),
                               SCMP_SYS(umount2),   SCMP_SYS(pivot_root), SCMP_SYS(move_mount),
                               SCMP_SYS(open_tree), SCMP_SYS(fsopen),     SCMP_SYS(mount_setattr) };
static const unsigned namespaces[] = { CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWIPC,
                                       CLONE_NEWNET,  CLONE_NEWUTS, CLONE_NEWCGROUP };

static int filter(int no_landlock)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int bad = ctx == NULL;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), refused[i], 0) != 0;
    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++)
        bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i])) != 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) != 0;
    if (no_landlock)
        bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(landlock_create_ruleset),
                                0) != 0;
    return bad || seccomp_load(ctx) != 0;
}

int main(int argc, char **argv)
{
    int no_landlock = argc > 1 && strcmp(argv[1], "--no-landlock") == 0;
    char **program = argv + 1 + no_landlock;
    if (argc < 2 + no_landlock || filter(no_landlock)) {
        fprintf(stderr, "usage: container [--no-landlock] PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    execvp(program[0], program);
    perror(program[0]);
    return 127;
}
