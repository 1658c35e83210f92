#include "sys/stop.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t asked;

/* The second request does not wait for a clean end: boxes die with their parent. */
static void on_signal(int sig)
{
    if (asked)
        _exit(128 + sig);
    asked = 1;
}

void stop_install(void)
{
    struct sigaction sa = { .sa_handler = on_signal };
    sigemptyset(&sa.sa_mask);
    sigaction(SIGINT, &sa, NULL); /* no SA_RESTART: waits return EINTR and look */
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool stop_asked(void)
{
    return asked != 0;
}

enum err_code stop_check(struct err *err)
{
    if (!asked)
        return OK;
    return err_raise(err, ERR_INTERRUPT, "interrupted");
}
