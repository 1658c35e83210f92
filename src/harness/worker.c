#include "harness/worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "harness/frame.h"
#include "sandbox/box.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/proc.h"

#define WORKER_TMP ((int64_t)4 << 30)
#define WORKER_TASKS 4096
#define FOLDERS_MAX 8

struct worker {
    struct arena arena;
    struct box *box;
    int sock; /* owned; -1 once it is dead */
    int log;  /* what the worker wrote to stderr: a memfd, owned */
    int64_t next_id;
    const char *folder[FOLDERS_MAX]; /* of the python: prefixes, site-packages */
    size_t n_folders;
    const char *site, *include;
};

static const char probe_script[] =
    "import sys, sysconfig, json, os\n"
    "import importlib.util as u\n"
    "t = u.find_spec('torch')\n"
    "site = os.path.dirname(os.path.dirname(t.origin)) if t else ''\n"
    "real = os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))\n"
    "print(json.dumps({'site': site, 'folders': [sys.prefix, sys.base_prefix, real, site,"
    " sysconfig.get_paths()['purelib'], sysconfig.get_paths()['include']]}))\n";

/* Where this python keeps itself: the box must hold these folders. */
static enum err_code python_folders(struct worker *w, const char *python, struct err *err)
{
    const char *argv[] = { python, "-E", "-c", probe_script, NULL };
    struct proc_spec spec = { .argv = argv, .wall_ms = 60000, .out_max = 64 << 10 };
    struct proc_result r;
    json_t *folders = NULL;
    struct str site;
    if (proc_run(&w->arena, &spec, &r, err) != OK)
        return err->code;
    own_json j = NULL;
    if (r.status != 0 || json_parse(r.out, 64 << 10, &j, err) != OK)
        return err_raise(err, ERR_MISSING, "'%s' does not run: %.*s", python,
                         (int)(r.err_out.len < 200 ? r.err_out.len : 200), r.err_out.ptr);
    if (json_get_text(j, "site", &site, err) != OK ||
        json_get_list(j, "folders", &folders, err) != OK)
        return err->code;
    if (site.len == 0) {
        err_raise(err, ERR_MISSING, "'%s' has no torch", python);
        return err_hint(err, "pip install torch, or name another python by --python");
    }
    w->site = str_z(&w->arena, site);
    size_t i;
    json_t *f;
    json_array_foreach(folders, i, f)
    {
        const char *path = str_z(&w->arena, str_from(json_string_value(f)));
        w->include = path; /* the last */
        bool known = !path_exists(path) || str_starts(str_from(path), S("/usr/")) ||
                     str_eq(str_from(path), S("/usr"));
        for (size_t k = 0; k < w->n_folders; k++)
            known = known || str_eq(str_from(w->folder[k]), str_from(path));
        if (!known && w->n_folders < FOLDERS_MAX)
            w->folder[w->n_folders++] = path;
    }
    return OK;
}

void worker_python_env(struct arena *a, enum target target, int threads, bool bind,
                       const char **env, size_t *n)
{
    env[(*n)++] = "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib";
    env[(*n)++] = "LC_ALL=C.UTF-8";
    env[(*n)++] = "HOME=/tmp";
    env[(*n)++] = "TMPDIR=/tmp";
    /* Or importing Inductor asks the driver and poisons later forks. */
    env[(*n)++] = "PYTORCH_NVML_BASED_CUDA_CHECK=1";
    /* Spinning waits of idle threads would disturb the other arms' windows. */
    env[(*n)++] = "OMP_WAIT_POLICY=PASSIVE";
    env[(*n)++] = arena_fmt(a, "OMP_NUM_THREADS=%d", threads);
    env[(*n)++] = arena_fmt(a, "MKL_NUM_THREADS=%d", threads);
    if (target == TARGET_CPU) {
        env[(*n)++] = "CUDA_VISIBLE_DEVICES=";
        /* Temporaries stay mapped: else eager is twice as slow in one session as in the next. */
        env[(*n)++] = "MALLOC_MMAP_MAX_=0";
        env[(*n)++] = "MALLOC_TRIM_THRESHOLD_=17179869184";
        env[(*n)++] = "MALLOC_TOP_PAD_=268435456";
    }
    if (bind) {
        env[(*n)++] = "OMP_PROC_BIND=close";
        env[(*n)++] = "OMP_PLACES=cores";
    }
}

static const char *const *environment(struct arena *a, const struct worker_config *cfg)
{
    const char **env = arena_new(a, const char *, PYTHON_ENV_MAX + 8);
    size_t n = 0;
    env[n++] = "PATH=/usr/local/cuda/bin:/usr/local/nvidia/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    env[n++] = "USER=worker";
    /* Inductor writes the number of threads into its code and leaves it out of its cache's key. */
    env[n++] = arena_fmt(a, "TORCHINDUCTOR_CACHE_DIR=/ca/cache/inductor-%d", cfg->threads);
    env[n++] = "TRITON_CACHE_DIR=/ca/cache/triton";
    env[n++] = "CUDA_CACHE_PATH=/ca/cache/nv";
    env[n++] = "CUDA_AGENT_DEVICE_LIB=/ca/libca_device.so";
    env[n++] = "TORCHINDUCTOR_COMPILE_THREADS=1";
    worker_python_env(a, cfg->target, cfg->threads, cfg->bind, env, &n);
    return env;
}

static enum err_code start(struct worker *w, const struct worker_config *cfg, int theirs,
                           struct err *err)
{
    const char *share = NULL, *program = NULL;
    if (share_dir(&w->arena, &share, err) != OK || program_dir(&w->arena, &program, err) != OK)
        return err->code;
    struct box_mount mounts[FOLDERS_MAX + 4];
    size_t n = 0;
    for (size_t i = 0; i < w->n_folders; i++)
        mounts[n++] = (struct box_mount){ w->folder[i], NULL, false, false };
    mounts[n++] = (struct box_mount){ path_join(&w->arena, share, "py"), "/ca/py", false, false };
    mounts[n++] = (struct box_mount){ path_join(&w->arena, program, "libca_device.so"),
                                      "/ca/libca_device.so", false, false };
    mounts[n++] = (struct box_mount){ cfg->cache_dir, "/ca/cache", true, false };
    const char *argv[] = { cfg->python, "-E", "-s", "-u", "-m", "worker", NULL };
    struct box_spec spec = { .role = BOX_WORKER,
                             .argv = argv,
                             .env = environment(&w->arena, cfg),
                             .dir = "/ca/py",
                             .mounts = mounts,
                             .n_mounts = n,
                             .gpu = cfg->target == TARGET_CUDA,
                             .channel_fd = theirs,
                             .stdin_fd = -1,
                             .out_fd = w->log,
                             .err_fd = w->log,
                             .tmp_bytes = WORKER_TMP,
                             .tasks_max = WORKER_TASKS };
    return box_start(&spec, &w->box, err);
}

enum err_code worker_open(const struct worker_config *cfg, struct worker **ret, struct err *err)
{
    int pair[2];
    struct worker *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_sys(err, "allocate a worker");
    w->sock = -1;
    w->log = memfd_create("worker-log", MFD_CLOEXEC);
    enum err_code code = python_folders(w, cfg->python, err);
    if (code == OK && dir_make(cfg->cache_dir, dir_mode(), err) != OK)
        code = err->code;
    if (code == OK && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        code = err_sys(err, "make a socket pair");
    else if (code == OK) {
        w->sock = pair[0];
        code = start(w, cfg, pair[1], err);
        close(pair[1]);
    }
    if (code != OK) {
        worker_close(w);
        return err_within(err, "start the worker");
    }
    *ret = w;
    return OK;
}

void worker_close(struct worker *w)
{
    if (w == NULL)
        return;
    own_fd_drop(&w->sock);
    own_fd_drop(&w->log);
    box_destroy(w->box);
    arena_fini(&w->arena);
    free(w);
}

bool worker_alive(const struct worker *w)
{
    return w != NULL && w->sock >= 0;
}

size_t worker_folders(const struct worker *w, const char *const **ret)
{
    *ret = w->folder;
    return w->n_folders;
}

const char *worker_include(const struct worker *w)
{
    return w->include;
}

const char *worker_site(const struct worker *w)
{
    return w->site;
}

/* It cannot be talked to any more: say how it ended and what it said last. */
static enum err_code died(struct worker *w, const char *op, bool in_time, struct err *err)
{
    struct box_result r = { 0 };
    struct err ignored = { 0 };
    char tail[400] = "";
    own_fd_drop(&w->sock);
    w->sock = -1;
    if (box_wait(w->box, in_time ? 500 : 0, &r, &ignored) != OK)
        return err_raise(err, ERR_WORKER, "'%s': %s", op, ignored.text);
    off_t size = lseek(w->log, 0, SEEK_END), from = size > 399 ? size - 399 : 0;
    ssize_t n = size > 0 ? pread(w->log, tail, 399, from) : 0;
    tail[n > 0 ? n : 0] = '\0';
    if (!in_time)
        return err_raise(err, ERR_TIMEOUT, "the worker did not answer '%s' in time", op);
    if (r.end == BOX_OUT_OF_MEMORY)
        return err_raise(err, ERR_LIMIT, "the worker ran out of memory in '%s'", op);
    return err_raise(err, ERR_WORKER, "the worker ended in '%s' (%s %d): %s", op,
                     r.end == BOX_EXITED ? "exit status" : "signal", r.status, tail);
}

static enum err_code refusal(const json_t *answer, struct err *err)
{
    static const struct {
        const char *name;
        enum err_code code;
    } codes[] = { { "task", ERR_TASK }, { "machine", ERR_CUDA }, { "missing", ERR_MISSING } };
    json_t *e = NULL;
    struct str code, text, hint;
    if (json_get_map(answer, "error", &e, err) != OK ||
        json_get_text(e, "code", &code, err) != OK || json_get_text(e, "text", &text, err) != OK ||
        json_get_text(e, "hint", &hint, err) != OK)
        return err_within(err, "the worker's refusal");
    enum err_code as = ERR_WORKER;
    for (size_t i = 0; i < COUNT(codes); i++)
        if (str_eq(code, str_from(codes[i].name)))
            as = codes[i].code;
    err_raise(err, as, "%.*s", STR_FMT(text));
    return hint.len > 0 ? err_hint(err, "%.*s", STR_FMT(hint)) : as;
}

/* What ended the talk, said in the worker's terms. */
static enum err_code ended(struct worker *w, const char *op, enum err_code code, struct err *err)
{
    if (code == ERR_WORKER || code == ERR_TIMEOUT)
        return died(w, op, code == ERR_WORKER, err);
    if (code != ERR_FORMAT)
        return code;
    char what[300];
    struct err ignored = { 0 };
    snprintf(what, sizeof what, "%.299s", err->text);
    died(w, op, false, &ignored); /* frames cannot be told apart any more */
    return err_raise(err, ERR_WORKER, "the worker's answer to '%s' is no frame: %s", op, what);
}

enum err_code worker_ask(struct worker *w, const char *op, json_t *args, int64_t limit_ms,
                         struct worker_fds *fds, json_t **ret, struct err *err)
{
    own_json ask = args ? args : json_object();
    own_json answer = NULL;
    int64_t until = clock_ms() + limit_ms, id = ++w->next_id, got_id = 0;
    bool ok = false;
    if (!worker_alive(w))
        return err_raise(err, ERR_WORKER, "the worker is gone");
    json_object_set_new(ask, "v", json_integer(1));
    json_object_set_new(ask, "id", json_integer(id));
    json_object_set_new(ask, "op", json_string(op));
    if (frame_send(w->sock, ask, err) != OK ||
        frame_receive(w->sock, until, fds, &answer, err) != OK)
        return ended(w, op, err->code, err);
    if (json_get_int(answer, "id", &got_id, err) != OK ||
        json_get_flag(answer, "ok", &ok, err) != OK)
        return err_within(err, "the worker's answer to '%s'", op);
    if (got_id != id)
        return err_raise(err, ERR_WORKER, "the worker answered question %lld, not %lld",
                         (long long)got_id, (long long)id);
    if (!ok)
        return refusal(answer, err);
    *ret = own_json_take(&answer);
    return OK;
}
