/* doctor: what is here, and the command that mends what is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include <jansson.h>

#include "app/cmd.h"
#include "app/doctor_endpoint.h"
#include "app/python.h"
#include "app/session.h"
#include "build/build.h"
#include "core/own.h"
#include "sandbox/box.h"
#include "sys/file.h"
#include "sys/proc.h"

static struct endpoint_options endpoint = ENDPOINT_DEFAULTS;
static bool json, thorough;
static int about;
static const char *const abouts[] = { "auto", "machine", "endpoint", NULL };
static struct str python;
static int sandbox;

static const struct field fields[] = {
    FIELD_CHOICE("sandbox", &sandbox, session_sandboxes, "what must wall foreign code in"),
    FIELD_FLAG("json", &json, "print one JSON object instead of text"),
    FIELD_TEXT("python", &python, "python3 that imports torch"),
    FIELD_CHOICE("about", &about, abouts,
                 "auto: the endpoint where one is named, else the machine"),
    ENDPOINT_ADDRESS_FIELDS(endpoint),
    FIELD_FLAG("thorough", &thorough, "also whether the start of a long prompt is kept"),
};

struct report {
    struct arena *arena;
    json_t *rows;
    bool cpu_works;
    const char *python; /* that imports torch, or NULL */
};

/* needed: the cpu target cannot do without it. */
static void row(struct report *r, const char *what, bool good, const char *found, const char *mend,
                bool needed)
{
    if (!good && needed)
        r->cpu_works = false;
    json_array_append_new(r->rows,
                          json_pack("{s:s,s:b,s:s,s:s,s:b}", "what", what, "good", good, "found",
                                    found, "mend", good ? "" : mend, "needed", needed));
    if (!json) {
        printf("%-10s %-4s %s\n", what, good ? "ok" : needed ? "LACK" : "no", found);
        if (!good && mend[0] != '\0')
            printf("%-15s mend: %s\n", "", mend);
    }
}

static const char *first_line(struct arena *a, const char *const *argv)
{
    struct proc_spec spec = { .argv = argv, .wall_ms = 30000, .out_max = 64 << 10 };
    struct proc_result r;
    struct err ignored = { 0 };
    struct str line = { 0 };
    if (proc_run(a, &spec, &r, &ignored) != OK || r.status != 0)
        return NULL;
    return str_cut(&r.out, '\n', &line) ? str_z(a, str_trim(line)) : NULL;
}

static void gpu_row(struct report *r)
{
    const char *argv[] = {
        "nvidia-smi",
        "--query-gpu=name,driver_version,clocks.sm,clocks.mem,memory.total,compute_mode",
        "--format=csv,noheader", NULL
    };
    const char *line = first_line(r->arena, argv);
    bool nodes = path_exists("/dev/nvidiactl") && path_exists("/dev/nvidia-uvm");
    row(r, "gpu", line && nodes, line ? line : "no NVIDIA device answers",
        line ? "the nodes /dev/nvidiactl and /dev/nvidia-uvm are missing: modprobe nvidia-uvm"
             : "install the NVIDIA driver; --target cpu works without",
        false);
}

static void python_rows(struct report *r)
{
    const char *path = NULL;
    struct err err = { 0 };
    bool good = python_find(r->arena, python, &path, &err) == OK;
    const char *argv[] = { path, "-E", "-c", "import torch; print(torch.__version__)", NULL };
    const char *version = good ? first_line(r->arena, argv) : NULL;
    r->python = version ? path : NULL;
    row(r, "torch", version != NULL,
        version ? arena_fmt(r->arena, "%s in %s", version, path)
        : good  ? "torch does not import"
                : err.text,
        err.hint[0] ? err.hint : "pip install torch", true);
}

/* Where python keeps its packages: NVIDIA's own may hold an nvcc. */
static const char *site(struct report *r)
{
    const char *argv[] = { r->python, "-E", "-c",
                           "import sysconfig; print(sysconfig.get_paths()['purelib'])", NULL };
    return r->python ? first_line(r->arena, argv) : NULL;
}

static void compiler_rows(struct report *r)
{
    struct toolchain t;
    toolchain_find(r->arena, site(r), &t);
    row(r, "gcc", t.gcc != NULL, t.gcc ? t.gcc_version : "no gcc in PATH",
        "apt-get install gcc libc6-dev", true);
    row(r, "nvcc", toolchain_cuda(&t),
        t.nvcc ? arena_fmt(r->arena, "%s in %s", t.nvcc_version, t.cuda_root)
               : "no nvcc in CUDA_HOME, PATH, /usr/local/cuda*, or beside torch",
        "install the CUDA toolkit (" CUDA_LEAST " or later): target cuda needs it", false);
    row(r, "g++", proc_find(r->arena, "g++") != NULL,
        proc_find(r->arena, "g++") ? proc_find(r->arena, "g++")
                                   : "torch.compile needs it on the cpu",
        "apt-get install g++", true);
}

/* What a cpu candidate may link: gcc knows where it looks. */
static void library_rows(struct report *r)
{
    static const struct {
        const char *name, *file, *mend;
    } all[] = { { "openblas", "libopenblas.so", "apt-get install libopenblas-dev" },
                { "onednn", "libdnnl.so", "apt-get install libdnnl-dev" } };
    for (size_t i = 0; i < COUNT(all); i++) {
        const char *argv[] = { "gcc", arena_fmt(r->arena, "-print-file-name=%s", all[i].file),
                               NULL };
        const char *path = proc_find(r->arena, "gcc") ? first_line(r->arena, argv) : NULL;
        bool good = path != NULL && path[0] == '/';
        row(r, all[i].name, good,
            good ? path : "not found: cpu candidates that call it do not link", all[i].mend, false);
    }
}

static void box_row(struct report *r)
{
    struct box_facts box;
    struct err err = { 0 };
    box_choose((enum box_choice)sandbox);
    bool good = box_probe(&box, &err) == OK;
    row(r, "sandbox", good,
        good ? arena_fmt(r->arena, "rung %d: %s", box.rung, box.detail) : err.text, err.hint, true);
}

static void disk_row(struct report *r)
{
    const char *home = NULL;
    struct err err = { 0 };
    struct statvfs fs = { 0 };
    bool good = home_dir(r->arena, &home, &err) == OK && statvfs(home, &fs) == 0;
    double gib = (double)fs.f_bavail * (double)fs.f_frsize / (double)((int64_t)1 << 30);
    row(r, "disk", good && gib >= 2,
        good ? arena_fmt(r->arena, "%.1f GiB free in %s", gib, home) : err.text,
        "free some space, or set CUDA_AGENT_HOME to another disk", true);
}

static enum err_code of_endpoint(int *ret_status, struct err *err)
{
    struct doctor_endpoint d = { .options = &endpoint, .thorough = thorough, .json = json };
    bool usable = false;
    if (endpoint.url.len == 0)
        return err_raise(err, ERR_USAGE, "--about endpoint: which? --endpoint http://HOST:PORT");
    if (doctor_endpoint(&d, &usable, err) != OK)
        return err->code;
    *ret_status = usable ? 0 : 1;
    return OK;
}

static enum err_code run(struct args args, int *ret_status, struct err *err)
{
    own_arena a = { 0 };
    own_json rows = json_array();
    struct report r = { .arena = &a, .rows = rows, .cpu_works = true };
    if (args.n != 0)
        return err_raise(err, ERR_USAGE, "wants no operand");
    if (about == 2 || (about == 0 && endpoint.url.len > 0))
        return of_endpoint(ret_status, err);
    gpu_row(&r);
    python_rows(&r);
    compiler_rows(&r);
    library_rows(&r);
    box_row(&r);
    disk_row(&r);
    if (json) {
        own_json all = json_pack("{s:s,s:b,s:O}", "schema", "cuda-agent/doctor/1", "cpu_works",
                                 r.cpu_works, "rows", rows);
        own_mem char *text = json_dumps(all, JSON_INDENT(1));
        printf("%s\n", text ? text : "{}");
    }
    *ret_status = r.cpu_works ? 0 : 1;
    return OK;
}

const struct cmd cmd_doctor = {
    .name = "doctor",
    .operands = "",
    .summary = "what is here, and how to mend what is missing",
    .details =
        "Exit status 0 when the cpu target can work, 1 when it cannot.\n\n"
        "With --endpoint it asks a model's server instead: nine or so short requests. What is\n"
        "found is kept for later runs. Exit status 0 when an agent can work with it, else 1.\n\n"
        "example: cuda-agent doctor --endpoint http://127.0.0.1:8000\n"
        "         cuda-agent doctor --endpoint https://HOST --model NAME --key-env MY_KEY "
        "--thorough",
    .fields = fields,
    .n_fields = COUNT(fields),
    .run = run,
};
