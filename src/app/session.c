#include "app/session.h"

#include <stdio.h>

#include "app/python.h"
#include "sandbox/box.h"
#include "sys/file.h"

#define MEM_GIB_LEAST 0.125

const char *const session_targets[] = { "auto", "cuda", "cpu", NULL };
const char *const session_presets[] = { "cuda-agent", "kernelbench", "strict", NULL };
const char *const session_againsts[] = { "best", "paper", NULL };
const char *const session_sandboxes[] = { "auto", "namespaces", "landlock", "disposable", NULL };

void session_say(const char *line)
{
    fprintf(stderr, "  %s\n", line);
}

enum err_code session_config(struct arena *a, const struct session_options *o,
                             struct exam_config *cfg, struct store **ret_store, struct err *err)
{
    if (o->mem_gib > 0 && o->mem_gib < MEM_GIB_LEAST) {
        err_raise(err, ERR_USAGE, "--mem-gib %g: a runner does not start in that", o->mem_gib);
        return err_hint(err, "give %g or more, or 0 for a quarter of the memory", MEM_GIB_LEAST);
    }
    box_choose((enum box_choice)o->sandbox);
    bool device_here = path_exists("/dev/nvidiactl") && path_exists("/dev/nvidia0");
    const char *home = NULL;
    *cfg = (struct exam_config){ .preset = (enum preset)o->preset,
                                 .against = o->against == 0 ? AGAINST_BEST : AGAINST_PAPER,
                                 .threads = (int)o->threads,
                                 .device = (int)o->device,
                                 .max_autotune = o->max_autotune,
                                 .mem_bytes = (int64_t)(o->mem_gib * (double)((int64_t)1 << 30)),
                                 .say = session_say };
    cfg->target = o->target == 1 || (o->target == 0 && device_here) ? TARGET_CUDA : TARGET_CPU;
    if (cfg->target == TARGET_CUDA && !device_here) {
        err_raise(err, ERR_MISSING, "no CUDA device here (/dev/nvidiactl)");
        return err_hint(err, "--target cpu needs none; 'cuda-agent doctor' tells what is here");
    }
    if (python_find(a, o->python, &cfg->python, err) != OK || home_dir(a, &home, err) != OK)
        return err->code;
    *ret_store = NULL;
    const char *at = path_join(a, home, "store.db");
    if (!o->no_store && store_open(at, ret_store, err) != OK) {
        err_within(err, "open '%s'", at);
        return err_hint(err, "set CUDA_AGENT_HOME to a folder that can be written, or give "
                             "--no-store");
    }
    cfg->store = *ret_store;
    return OK;
}
