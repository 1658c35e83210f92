#include "harness/exam.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/json.h"
#include "harness/exam_int.h"
#include "harness/plan.h"
#include "sys/file.h"
#include "sys/stop.h"

#define LOCK_FOLDER "/tmp"
#define HELLO_MS 120000
#define LOAD_MS 120000
#define BIND_MS 120000
#define CHECK_MS 600000
#define SETS_CPU 8
#define SETS_CUDA 48
#define MEM_DEFAULT_SHARE 4 /* a runner may hold a quarter of the machine's memory */

void exam_say(const struct exam *x, const char *fmt, ...)
{
    char line[512];
    va_list args;
    if (x->cfg.say == NULL)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    str_plain(line);
    x->cfg.say(line);
}

/* ---- trusted candidates: one that does nothing, one that takes 2 ms ---- */

static const char noop_c[] =
    "#include \"cuda_agent.h\"\n"
    "int ca_forward(const struct ca_call *c)\n{\n    (void)c;\n    return 0;\n}\n";
static const char noop_cu[] =
    "#include \"cuda_agent.h\"\n"
    "extern \"C\" int ca_forward(const struct ca_call *)\n{\n    return 0;\n}\n";
static const char spin_cu[] =
    "#include \"cuda_agent.h\"\n"
    "__global__ void spin(long long cycles)\n{\n    long long t0 = clock64();\n"
    "    while (clock64() - t0 < cycles)\n        ;\n}\n"
    "extern \"C\" int ca_forward(const struct ca_call *c)\n{\n"
    "    spin<<<1, 1, 0, (cudaStream_t)c->stream>>>(3000000);\n"
    "    return (int)cudaGetLastError();\n}\n";

static enum err_code build_trusted(struct exam *x, struct candidate *c, const char **ret_so,
                                   struct err *err)
{
    candidate_seal(c);
    struct build_request req = { c, &x->tools, x->arch, 180000,
                                 c->contract == CONTRACT_TORCH ? &x->torch : NULL };
    struct build_result b;
    if (build_run(&x->arena, &req, &b, err) != OK)
        return err->code;
    if (!b.ok)
        return err_raise(err, ERR_MISSING, "the compiler cannot build a trivial candidate: %s",
                         b.reason);
    *ret_so = b.so_path;
    return OK;
}

/* For the torch contract: the same kernel, and no outputs handed over. */
static const char spin_py[] =
    "import sys, torch, cuda_extension\n"
    "C = sys.modules['forkserver.candidate'].Candidate\n"
    "prepare = C._prepare\n"
    "def without_state(self, call):\n"
    "    nest, _, outs, sizes = prepare(self, call)\n    return nest, [], outs, sizes\n"
    "C._prepare, C._hand_over = without_state, lambda *a: None\n"
    "class ModelNew(torch.nn.Module):\n"
    "    def __init__(self, *a, **k):\n        super().__init__()\n"
    "    def load_state_dict(self, *a, **k):\n        pass\n"
    "    def forward(self, *a, **k):\n        cuda_extension.spin()\n        return ()\n";
static const char spin_cpp[] =
    "#include \"../binding_registry.h\"\n"
    "extern \"C\" void spin_launcher();\n"
    "static void announce(pybind11::module &m) { m.def(\"spin\", &spin_launcher); }\n"
    "REGISTER_BINDING(spin, announce)\n";
static const char spin_launcher_cu[] =
    "__global__ void spin(long long cycles)\n{\n    long long t0 = clock64();\n"
    "    while (clock64() - t0 < cycles)\n        ;\n}\n"
    "extern \"C\" void spin_launcher()\n{\n    spin<<<1, 1>>>(3000000);\n}\n";
static const char spin_launcher_c[] = "void spin_launcher(void)\n{\n}\n";

enum err_code exam_torch_spin(struct exam *x, struct err *err)
{
    bool cuda = x->cfg.target == TARGET_CUDA;
    struct candidate c = {
        .target = x->cfg.target, .contract = CONTRACT_TORCH, .author = "exam", .n_files = 3
    };
    c.file[0] = (struct source_file){ MODEL_NEW, str_from(spin_py) };
    c.file[1] = (struct source_file){ "spin_binding.cpp", str_from(spin_cpp) };
    c.file[2] = cuda ? (struct source_file){ "spin.cu", str_from(spin_launcher_cu) }
                     : (struct source_file){ "spin.c", str_from(spin_launcher_c) };
    return x->torch_so != NULL ? OK : build_trusted(x, &c, &x->torch_so, err);
}

static enum err_code build_one(struct exam *x, const char *name, const char *text,
                               const char **ret_so, struct err *err)
{
    struct candidate c = { .target = x->cfg.target, .author = "exam", .n_files = 1 };
    c.file[0] = (struct source_file){ name, str_from(text) };
    return build_trusted(x, &c, ret_so, err);
}

static enum err_code build_both(struct exam *x, struct err *err)
{
    bool cuda = x->cfg.target == TARGET_CUDA;
    if (build_one(x, cuda ? "noop.cu" : "noop.c", cuda ? noop_cu : noop_c, &x->noop_so, err) != OK)
        return err->code;
    return cuda ? build_one(x, "spin.cu", spin_cu, &x->spin_so, err) : OK;
}

/* ---- runners ---- */

static int allowed_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* May threads be bound to cores? Below rung 1, and where a box holds fewer processors than there
 * are, its filter refuses that: then neither worker nor runner does. */
static bool may_bind(const struct exam *x, int rung)
{
    return x->cfg.target == TARGET_CPU && rung == 1 && x->cfg.threads == allowed_cores();
}

enum err_code exam_fork_server(struct exam *x, struct err *err)
{
    const char *const *folder, *share = NULL;
    struct fork_server_config cfg = { x->cfg.python, x->cfg.target, x->cfg.threads, x->bound,
                                      x->task.source };
    if (x->fork != NULL)
        return OK;
    if (share_dir(&x->arena, &share, err) != OK)
        return err->code;
    size_t n = worker_folders(x->worker, &folder);
    x->n_fork_folders = 0;
    for (size_t i = 0; i < n && i + 1 < FORK_FOLDERS_MAX; i++)
        x->fork_folder[x->n_fork_folders++] = str_z(&x->arena, str_from(folder[i]));
    x->fork_folder[x->n_fork_folders++] = path_join(&x->arena, share, "py");
    return fork_server_open(&cfg, &x->fork, err);
}

static enum err_code start_runner(struct exam *x, enum contract contract, struct runner **ret,
                                  struct err *err)
{
    struct runner_config cfg = { .target = x->cfg.target,
                                 .threads = x->cfg.threads,
                                 .device = x->cfg.device,
                                 .cpus_max = x->cfg.threads < allowed_cores() ? x->cfg.threads : 0,
                                 .bind = x->bound,
                                 .mem_bytes = x->cfg.mem_bytes,
                                 .library_path = x->library_path,
                                 .cuda_root = x->tools.cuda_root,
                                 .slab_fd = x->slab_fd,
                                 .slab_bytes = x->slab_bytes,
                                 .slab_vmm = x->slab_vmm,
                                 .n_slabs = SLABS,
                                 .plan_fd = x->plan_fd,
                                 .plan_bytes = x->plan_bytes };
    if (contract == CONTRACT_NATIVE)
        return runner_start(&cfg, ret, err);
    if (exam_fork_server(x, err) != OK)
        return err->code;
    cfg.fork_server = fork_server_socket(x->fork);
    cfg.folder = x->fork_folder;
    cfg.n_folders = x->n_fork_folders;
    if (runner_start(&cfg, ret, err) == OK)
        return OK;
    const char *words = fork_server_last_words(x->fork);
    if (words[0] == '\0')
        return err->code;
    err_raise(err, ERR_MISSING, "the fork server ended: %s", words);
    fork_server_close(x->fork);
    x->fork = NULL;
    return err->code;
}

enum err_code exam_runner(struct exam *x, enum contract contract, struct runner **ret,
                          struct err *err)
{
    int *n = &x->pool[contract].n;
    struct runner **v = x->pool[contract].v;
    if (*n == 0)
        return start_runner(x, contract, ret, err);
    *ret = v[0]; /* the one that had most time to come up */
    memmove(v, v + 1, (size_t)-- * n * sizeof *v);
    return OK;
}

enum err_code exam_refill(struct exam *x, enum contract contract, struct err *err)
{
    int *n = &x->pool[contract].n;
    if (*n >= POOL_LEAST)
        return OK;
    while (*n < POOL_MAX) {
        if (start_runner(x, contract, &x->pool[contract].v[*n], err) != OK)
            return err->code;
        ++*n;
    }
    return OK;
}

/* ---- the device lock: nobody else computes while a grading times ---- */

/* One lock for all users and homes of this machine: a file that anybody may lock and nobody reads.
 * Another user's file in a sticky folder must be opened without O_CREAT (fs.protected_regular). */
static enum err_code lock_open(struct exam *x, struct err *err)
{
    own_arena tmp = { 0 };
    const char *path = arena_fmt(&tmp, LOCK_FOLDER "/cuda-agent-lock-%s", x->uuid);
    int how = O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
    x->lock_fd = open(path, how);
    if (x->lock_fd < 0 && errno == ENOENT)
        x->lock_fd = open(path, how | O_CREAT, 0444);
    if (x->lock_fd < 0 && errno == EACCES) /* made by another in between */
        x->lock_fd = open(path, how);
    if (x->lock_fd < 0)
        return err_sys(err, "open '%s'", path);
    return OK;
}

enum err_code exam_lock(struct exam *x, enum exam_hold hold, struct err *err)
{
    int how = hold == HOLD_ALONE ? LOCK_EX : LOCK_SH;
    if (x->lock_fd < 0 && lock_open(x, err) != OK)
        return err->code;
    if (flock(x->lock_fd, how | LOCK_NB) == 0)
        return OK;
    exam_say(x, "waiting: another grading uses %s", x->device);
    while (flock(x->lock_fd, how) != 0)
        if (errno != EINTR || stop_check(err) != OK)
            return err->code ? err->code : err_sys(err, "lock the device");
    return OK;
}

void exam_unlock(struct exam *x)
{
    flock(x->lock_fd, LOCK_UN);
}

/* ---- opening ---- */

static const char *device_text(const struct exam *x, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(x->hello, "device"), key));
    return text ? text : "";
}

static enum err_code say_hello(struct exam *x, struct err *err)
{
    json_t *ask = json_pack("{s:s,s:i,s:i}", "target", target_name(x->cfg.target), "threads",
                            x->cfg.threads, "device", x->cfg.device);
    struct str versions;
    if (worker_ask(x->worker, "hello", ask, HELLO_MS, NULL, &x->hello, err) != OK ||
        json_get_text(x->hello, "versions", &versions, err) != OK)
        return err->code;
    x->versions = versions.ptr;
    x->device = device_text(x, "name");
    x->uuid = device_text(x, "uuid");
    x->arch = device_text(x, "arch");
    return OK;
}

/* On such a task a candidate that does nothing would be paid. */
static enum err_code refuse_unsound(const struct exam *x, const json_t *answer, struct err *err)
{
    json_t *unsound = NULL;
    if (json_get_list(answer, "unsound", &unsound, err) != OK)
        return err_within(err, "load");
    if (x->cfg.unsound_too || json_array_size(unsound) == 0)
        return OK;
    err_raise(err, ERR_TASK, "nothing can be graded here: %s",
              json_string_value(json_array_get(unsound, 0)));
    return err_hint(err, "'cuda-agent task check FILE' says what is wrong with the task");
}

static enum err_code load(struct exam *x, struct err *err)
{
    own_json answer = NULL;
    json_t *sig = NULL, *families = NULL, *notes = NULL, *item;
    size_t i;
    json_t *ask = json_pack("{s:s,s:s%,s:s}", "name", x->task.name, "source", x->task.source.ptr,
                            x->task.source.len, "preset", preset_name(x->cfg.preset));
    if (ask == NULL)
        return err_raise(err, ERR_TASK, "the task file is not UTF-8 text");
    if (worker_ask(x->worker, "load", ask, LOAD_MS, NULL, &answer, err) != OK) {
        if (err->code == ERR_TIMEOUT) {
            err_raise(err, ERR_TASK, "loading the task takes longer than %d s", LOAD_MS / 1000);
            err_hint(err, "Model, get_inputs() and one forward must end within that time");
        }
        if (err->code == ERR_WORKER && !worker_alive(x->worker)) {
            const char *how = str_z(&x->arena, str_from(err->text));
            err_raise(err, ERR_TASK, "%s", how);
            err_hint(err, "the task's own code ended the process, crashed or took all memory");
        }
        return err->code;
    }
    if (json_get_map(answer, "signature", &sig, err) != OK ||
        signature_parse(&x->arena, sig, &x->sig, err) != OK ||
        json_get_list(answer, "families", &families, err) != OK ||
        json_get_list(answer, "notes", &notes, err) != OK ||
        json_get_real(answer, "eager_us", &x->eager_us, err) != OK)
        return err_within(err, "load");
    if (refuse_unsound(x, answer, err) != OK)
        return err->code;
    x->n_families = 0;
    json_array_foreach(families, i, item) if (x->n_families < FAMILIES_MAX)
        x->family[x->n_families++] =
        (char *)(uintptr_t)str_z(&x->arena, str_from(json_string_value(item)));
    if (x->n_families == 0)
        return err_raise(err, ERR_TASK, "no input family can be used");
    json_array_foreach(notes, i, item) exam_say(x, "note: %s", json_string_value(item));
    return OK;
}

static enum err_code read_slabs(struct exam *x, struct worker_fds *fds, struct err *err)
{
    json_t *slabs = NULL;
    if (json_get_list(x->bind, "slabs", &slabs, err) != OK)
        return err->code;
    if (json_array_size(slabs) != SLABS || fds->n != SLABS)
        return err_raise(err, ERR_WORKER, "bind: %zu slabs and %zu descriptors",
                         json_array_size(slabs), fds->n);
    for (int i = 0; i < SLABS; i++) {
        int64_t bytes = 0;
        struct str kind;
        const json_t *s = json_array_get(slabs, (size_t)i);
        if (json_get_int(s, "bytes", &bytes, err) != OK ||
            json_get_text(s, "kind", &kind, err) != OK)
            return err->code;
        x->slab_fd[i] = fds->fd[i];
        x->slab_bytes[i] = (uint64_t)bytes;
        x->slab_vmm[i] = str_eq(kind, S("vmm"));
    }
    return OK;
}

static enum err_code bind_sets(struct exam *x, struct err *err)
{
    struct worker_fds fds = { 0 };
    json_t *floor = NULL;
    int sets = x->cfg.target == TARGET_CUDA ? SETS_CUDA : SETS_CPU;
    if (worker_ask(x->worker, "bind", json_pack("{s:i}", "sets", sets), BIND_MS, &fds, &x->bind,
                   err) != OK ||
        read_slabs(x, &fds, err) != OK ||
        plan_make(&x->sig, x->bind, &x->plan_fd, &x->plan_bytes, &x->n_sets, err) != OK)
        return err_within(err, "bind");
    if (json_get_map(x->bind, "floor", &floor, err) != OK ||
        json_get_int(floor, "bytes", &x->floor_bytes, err) != OK ||
        json_get_real(floor, "flops", &x->floor_flops, err) != OK ||
        json_get_real(floor, "us", &x->floor_us, err) != OK ||
        json_get_real(floor, "bandwidth", &x->bandwidth, err) != OK)
        return err_within(err, "bind");
    x->out_bytes = 0;
    for (size_t i = 0; i < x->sig.out.n; i++)
        x->out_bytes += x->sig.out.v[i].bytes;
    return OK;
}

/* cudart and cublas for the runner: the toolkit's folder, or the one of torch's packages. */
static void find_libraries(struct exam *x)
{
    const char *root = x->tools.cuda_root;
    const char *lib = root ? path_join(&x->arena, root, "lib64") : NULL;
    if (lib == NULL || !path_exists(lib))
        lib = root ? path_join(&x->arena, root, "lib") : NULL;
    x->library_path = lib && path_exists(lib) ? lib : "/usr/local/cuda/lib64";
}

static enum err_code start_worker(struct exam *x, struct err *err)
{
    const char *home = NULL;
    if (home_dir(&x->arena, &home, err) != OK)
        return err->code;
    const char *inductor = path_join(&x->arena, home, "inductor");
    if (dir_make(inductor, dir_mode(), err) != OK)
        return err->code;
    struct worker_config cfg = { x->cfg.python, x->cfg.target, x->cfg.threads,
                                 path_join(&x->arena, inductor, x->task.hash), x->bound };
    if (worker_open(&cfg, &x->worker, err) != OK || say_hello(x, err) != OK)
        return err->code;
    return OK;
}

static enum err_code open_steps(struct exam *x, struct err *err)
{
    struct box_facts box;
    if (box_probe(&box, err) != OK)
        return err->code;
    if (x->cfg.target == TARGET_CUDA &&
        exam_refuse_mps(getenv("CUDA_MPS_PIPE_DIRECTORY"), err) != OK)
        return err->code;
    x->bound = may_bind(x, box.rung);
    if (start_worker(x, err) != OK)
        return err->code;
    toolchain_find(&x->arena, worker_site(x->worker), &x->tools);
    find_libraries(x);
    x->torch =
        (struct torch_facts){ .site = str_z(&x->arena, str_from(worker_site(x->worker))),
                              .include = str_z(&x->arena, str_from(worker_include(x->worker))),
                              .version = str_z(&x->arena, str_from(json_string_value(
                                                              json_object_get(x->hello, "torch")))),
                              .cxx11_abi = json_is_true(json_object_get(x->hello, "cxx11_abi")) };
    if (build_both(x, err) != OK)
        return err->code;
    if (exam_lock(x, HOLD_TOGETHER, err) != OK)
        return err->code;
    if (load(x, err) != OK)
        return err_within(err, "task '%s'", x->task.name);
    if (bind_sets(x, err) != OK || exam_refill(x, CONTRACT_NATIVE, err) != OK)
        return err->code;
    if (x->cfg.store != NULL && store_task_put(x->cfg.store, &x->task, err) != OK)
        return err->code;
    exam_unlock(x);
    return OK;
}

enum err_code exam_calibrate(struct exam *x, struct err *err)
{
    if (x->calibrated)
        return OK;
    if (exam_lock(x, HOLD_ALONE, err) != OK)
        return err->code;
    enum err_code code = window_calibrate(x, err);
    exam_unlock(x);
    x->calibrated = code == OK;
    return code;
}

enum err_code exam_open(const struct exam_config *cfg, const struct task *task, struct exam **ret,
                        struct err *err)
{
    struct exam *x = calloc(1, sizeof *x);
    if (x == NULL)
        return err_sys(err, "allocate an exam");
    x->cfg = *cfg;
    x->task = *task;
    x->plan_fd = x->lock_fd = -1;
    for (int i = 0; i < SLABS; i++)
        x->slab_fd[i] = -1;
    if (x->cfg.threads <= 0)
        x->cfg.threads = allowed_cores();
    if (x->cfg.mem_bytes <= 0)
        x->cfg.mem_bytes =
            (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / MEM_DEFAULT_SHARE;
    if (open_steps(x, err) != OK) {
        exam_close(x);
        return err->code;
    }
    *ret = x;
    return OK;
}

static void drop_session(struct exam *x)
{
    for (int c = 0; c < CONTRACTS; c++)
        while (x->pool[c].n > 0)
            runner_destroy(x->pool[c].v[--x->pool[c].n]);
    for (int i = 0; i < SLABS; i++) {
        own_fd_drop(&x->slab_fd[i]);
        x->slab_fd[i] = -1;
    }
    own_fd_drop(&x->plan_fd);
    x->plan_fd = -1;
    worker_close(x->worker);
    x->worker = NULL;
    x->calibrated = false;
    for (int i = 0; i < PYTORCH_ARMS; i++)
        x->arm[i].prepared = false;
    json_decref(x->hello);
    json_decref(x->bind);
    x->hello = x->bind = NULL;
}

void exam_close(struct exam *x)
{
    if (x == NULL)
        return;
    drop_session(x);
    fork_server_close(x->fork);
    own_fd_drop(&x->lock_fd);
    arena_fini(&x->arena);
    free(x);
}

enum err_code exam_revive(struct exam *x, struct err *err)
{
    drop_session(x);
    if (open_steps(x, err) != OK)
        return err_within(err, "start the worker again");
    return OK;
}

const struct signature *exam_signature(const struct exam *x)
{
    return &x->sig;
}

const json_t *exam_hello(const struct exam *x)
{
    return x->hello;
}

enum err_code exam_check(struct exam *x, json_t **ret, struct err *err)
{
    if (exam_lock(x, HOLD_TOGETHER, err) != OK)
        return err->code;
    enum err_code code = worker_ask(x->worker, "check", NULL, CHECK_MS, NULL, ret, err);
    exam_unlock(x);
    return code;
}

enum err_code exam_trace(struct exam *x, json_t **ret, struct err *err)
{
    own_json answer = NULL;
    json_t *graph = NULL;
    if (worker_ask(x->worker, "trace", NULL, CHECK_MS, NULL, &answer, err) != OK ||
        json_get_map(answer, "graph", &graph, err) != OK)
        return err_within(err, "trace");
    *ret = json_incref(graph);
    return OK;
}
