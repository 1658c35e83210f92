#include "build/build.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build/build_int.h"
#include "build/imports.h"
#include "core/own.h"
#include "sandbox/box.h"
#include "sys/clock.h"
#include "sys/file.h"

/* Templates of CUDA libraries need it; C does not. */
#define BUILD_MEM(target) ((int64_t)((target) == TARGET_CUDA ? 8 : 2) << 30)
#define BUILD_TMP ((int64_t)2 << 30)
#define OBJECT_MAX ((int64_t)512 << 20)

void arg(struct argv *a, const char *text)
{
    if (a->n + 1 < ARGS_MAX)
        a->v[a->n++] = text;
}

bool build_is_source(const char *name)
{
    return str_ends(str_from(name), S(".cu")) || str_ends(str_from(name), S(".c")) ||
           str_ends(str_from(name), S(".cpp"));
}

static bool fast_math(struct str text)
{
    struct str line = { 0 };
    return str_cut(&text, '\n', &line) && str_eq(str_trim(line), S("// ca: fast-math"));
}

bool build_mentions(const struct candidate *c, const char *word)
{
    for (size_t i = 0; i < c->n_files; i++)
        if (memmem(c->file[i].text.ptr, c->file[i].text.len, word, strlen(word)) != NULL)
            return true;
    return false;
}

static void compiler_args(struct arena *a, const struct build_request *req, struct argv *v)
{
    if (req->candidate->target == TARGET_CPU) {
        arg(v, req->tools->gcc);
        arg(v, "-std=gnu17");
        arg(v, "-O3");
        arg(v, "-march=native");
        arg(v, "-fopenmp");
        arg(v, "-fPIC");
        arg(v, "-Werror=implicit-function-declaration"); /* or the first error is a consequence */
    } else {
        arg(v, req->tools->nvcc);
        arg(v, "-std=c++17");
        arg(v, "-O3");
        arg(v, arena_fmt(a, "-gencode=arch=compute_%s,code=sm_%s", req->cuda_arch, req->cuda_arch));
        arg(v, "-cudart=shared");
        arg(v, "-Xcompiler=-fPIC");
        arg(v, "-t0");
    }
    arg(v, "-I/ca/include");
    arg(v, "-I/ca/src");
}

static void library_args(const struct build_request *req, struct argv *v)
{
    const struct candidate *c = req->candidate;
    arg(v, "-shared");
    if (c->target == TARGET_CPU) {
        if (build_mentions(c, "cblas"))
            arg(v, "-lopenblas");
        if (build_mentions(c, "dnnl"))
            arg(v, "-ldnnl");
    } else {
        if (build_mentions(c, "cublas")) {
            arg(v, "-lcublasLt");
            arg(v, "-lcublas");
        }
        if (build_mentions(c, "cudnn"))
            arg(v, "-lcudnn");
    }
    arg(v, "-lm");
}

enum err_code build_processor(struct arena *a, struct str *ret, struct err *err)
{
    struct str cpu;
    if (file_read(a, "/proc/cpuinfo", 16 << 20, &cpu, err) != OK)
        return err->code;
    const char *end = strstr(cpu.ptr, "\n\n");
    const char *mhz = strstr(cpu.ptr, "cpu MHz");
    const char *line = mhz ? strchr(mhz, '\n') : NULL;
    struct buf b = { .arena = a, .max = 64 << 10 };
    buf_add(&b, (struct str){ cpu.ptr, (size_t)((mhz ? mhz : cpu.ptr) - cpu.ptr) });
    if (line != NULL && end != NULL && end > line)
        buf_add(&b, (struct str){ line, (size_t)(end - line) });
    return buf_done(&b, ret, err);
}

/* Everything that the object depends on; the source text is in the candidate's hash. */
static enum err_code cache_key(struct arena *a, const struct build_request *req, char ret[HASH_HEX],
                               struct err *err)
{
    struct argv v = { 0 };
    struct buf b = { .arena = a, .max = 64 << 10 };
    if (req->candidate->contract == CONTRACT_TORCH) {
        char torch[HASH_HEX];
        if (torch_identity(a, torch, err) != OK)
            return err->code;
        buf_addf(&b, "torch %s abi %d %s\n", req->torch->version, req->torch->cxx11_abi, torch);
    }
    compiler_args(a, req, &v);
    library_args(req, &v);
    for (size_t i = 0; i < v.n; i++)
        buf_addf(&b, "%s\n", v.v[i]);
    struct str processor = S(""), flags;
    if (req->candidate->target == TARGET_CPU && build_processor(a, &processor, err) != OK)
        return err->code;
    buf_add(&b, processor);
    if (buf_done(&b, &flags, err) != OK)
        return err->code;
    const char *version =
        req->candidate->target == TARGET_CPU ? req->tools->gcc_version : req->tools->nvcc_version;
    struct str part[] = { str_from(req->candidate->hash), flags, str_from(version), S("build 2") };
    hash_parts(part, COUNT(part), ret);
    return OK;
}

/* The folder that the builder sees as /ca/src, and the one that it may write. */
static enum err_code lay_sources(struct arena *a, const struct candidate *c, const char *dir,
                                 struct err *err)
{
    const char *src = path_join(a, dir, "src"), *out = path_join(a, dir, "out");
    if (dir_make(src, 0755, err) != OK || dir_make(out, dir_mode(), err) != OK)
        return err->code;
    if (c->contract == CONTRACT_TORCH)
        return torch_lay(a, c, src, err);
    for (size_t i = 0; i < c->n_files; i++)
        if (file_write(path_join(a, src, c->file[i].name), c->file[i].text, 0644, err) != OK)
            return err->code;
    return OK;
}

enum err_code build_boxed(struct arena *a, const struct build_request *req, const char *dir,
                          const char *out, const struct argv *v, int64_t wall_ms,
                          struct box_output *ret, struct err *err)
{
    const char *share = NULL;
    if (share_dir(a, &share, err) != OK)
        return err->code;
    const struct torch_facts *t = req->torch;
    const char *none = "/nonexistent";
    const struct box_mount mounts[] = {
        { path_join(a, dir, "src"), "/ca/src", false, false },
        { out, "/ca/out", true, false },
        { path_join(a, share, "include"), "/ca/include", false, false },
        { req->tools->cuda_root ? req->tools->cuda_root : none, NULL, false, true },
        { t ? path_join(a, t->site, "torch/include") : none, "/ca/torch/include", false, true },
        { t ? path_join(a, t->site, "torch/lib") : none, "/ca/torch/lib", false, true },
        { t ? t->include : none, "/ca/python", false, true },
        { path_join(a, dir, "pch"), "/ca/pch", false, true },
    };
    const char *env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp", "HOME=/tmp", NULL };
    struct box_spec spec = { .role = BOX_BUILDER,
                             .argv = v->v,
                             .env = env,
                             .dir = "/ca/src",
                             .mounts = mounts,
                             .n_mounts = COUNT(mounts),
                             .channel_fd = -1,
                             .stdin_fd = -1,
                             .out_fd = -1,
                             .err_fd = -1,
                             .mem_bytes = BUILD_MEM(req->candidate->target),
                             .tmp_bytes = BUILD_TMP,
                             .file_bytes =
                                 req->torch ? 4 * OBJECT_MAX : OBJECT_MAX, /* precompiled headers */
                             .cpu_s = 600,
                             .tasks_max = 256 };
    return box_run(a, &spec, wall_ms, LOG_MAX, ret, err);
}

static const char *object_of(struct arena *a, const char *name)
{
    return arena_fmt(a, "/ca/out/%s.o", name);
}

/* Files that want different flags are compiled one by one, then linked. */
static enum err_code compile(struct arena *a, const struct build_request *req, const char *dir,
                             struct box_output *ret, struct err *err)
{
    const struct candidate *c = req->candidate;
    size_t n_sources = 0, n_fast = 0;
    int64_t until = clock_ms() + req->wall_ms;
    for (size_t i = 0; i < c->n_files; i++) {
        n_sources += build_is_source(c->file[i].name);
        n_fast += build_is_source(c->file[i].name) && fast_math(c->file[i].text);
    }
    const char *fast = c->target == TARGET_CPU ? "-ffast-math" : "--use_fast_math";
    bool mixed = n_fast != 0 && n_fast != n_sources;
    struct argv link = { 0 };
    compiler_args(a, req, &link);
    if (!mixed && n_fast > 0)
        arg(&link, fast);
    for (size_t i = 0; i < c->n_files; i++) {
        const char *name = c->file[i].name;
        if (!build_is_source(name))
            continue;
        arg(&link, mixed ? object_of(a, name) : arena_fmt(a, "/ca/src/%s", name));
        if (!mixed)
            continue;
        struct argv one = { 0 };
        compiler_args(a, req, &one);
        if (fast_math(c->file[i].text))
            arg(&one, fast);
        arg(&one, "-c");
        arg(&one, arena_fmt(a, "/ca/src/%s", name));
        arg(&one, "-o");
        arg(&one, object_of(a, name));
        if (build_boxed(a, req, dir, path_join(a, dir, "out"), &one, until - clock_ms(), ret,
                        err) != OK)
            return err->code;
        if (ret->result.end != BOX_EXITED || ret->result.status != 0)
            return OK;
    }
    library_args(req, &link);
    arg(&link, "-o");
    arg(&link, "/ca/out/candidate.so");
    return build_boxed(a, req, dir, path_join(a, dir, "out"), &link, until - clock_ms(), ret, err);
}

/* The first line of the log that names an error, without the builder's folder. */
static void first_error(struct str log, char ret[256])
{
    struct str line = { 0 }, rest = log;
    while (str_cut(&rest, '\n', &line))
        if (memmem(line.ptr, line.len, "error", 5) || memmem(line.ptr, line.len, "fatal", 5) ||
            memmem(line.ptr, line.len, "undefined reference", 19))
            break;
    if (rest.len == 0 && line.len == 0)
        line = S("the compiler failed without a message");
    if (str_starts(line, S("/ca/src/")))
        line = str_drop(line, 8);
    snprintf(ret, 256, "%.*s", (int)(line.len < 255 ? line.len : 255), line.ptr);
}

static enum err_code judge(struct arena *a, const struct candidate *c, const char *so,
                           const struct box_output *out, struct build_result *r, struct err *err)
{
    struct buf log = { .arena = a, .max = 2 * LOG_MAX };
    buf_add(&log, out->out);
    buf_add(&log, out->err_out);
    if (buf_done(&log, &r->log, err) != OK)
        return err->code;
    if (out->result.end == BOX_TIMED_OUT) {
        r->timed_out = true;
        snprintf(r->reason, sizeof r->reason, "the build took longer than its limit");
    } else if (out->result.end == BOX_OUT_OF_MEMORY) {
        snprintf(r->reason, sizeof r->reason, "the compiler needed more than %lld GiB",
                 (long long)(BUILD_MEM(c->target) >> 30));
    } else if (out->result.end != BOX_EXITED || out->result.status != 0) {
        first_error(r->log, r->reason);
    } else {
        const char *offender = NULL;
        bool torch = c->contract == CONTRACT_TORCH;
        if (imports_check(a, so, torch, &offender, err) != OK)
            return err->code;
        r->ok = offender == NULL;
        r->forbidden = offender != NULL;
        if (offender != NULL)
            snprintf(r->reason, sizeof r->reason,
                     "'%s' is not on the list of what a candidate may use (docs/header.md)",
                     offender);
    }
    str_plain(r->reason);
    return OK;
}

static enum err_code compilers_here(struct arena *a, const struct build_request *req,
                                    struct err *err)
{
    bool torch = req->candidate->contract == CONTRACT_TORCH;
    if (torch && req->torch == NULL)
        return err_raise(err, ERR_MISSING,
                         "there is no PyTorch here to build a torch candidate against");
    if (torch && req->tools->gxx == NULL) {
        err_raise(err, ERR_MISSING, "no C++ compiler: g++ is not in PATH");
        return err_hint(err, "apt-get install g++");
    }
    if (torch && !path_exists(path_join(a, req->torch->include, "Python.h"))) {
        err_raise(err, ERR_MISSING, "no Python.h in '%s'", req->torch->include);
        return err_hint(err, "apt-get install python3-dev");
    }
    if (req->candidate->target == TARGET_CPU && req->tools->gcc == NULL) {
        err_raise(err, ERR_MISSING, "no C compiler: gcc is not in PATH");
        return err_hint(err, "apt-get install gcc libc6-dev");
    }
    if (req->candidate->target == TARGET_CUDA && req->tools->nvcc == NULL) {
        err_raise(err, ERR_MISSING,
                  "no CUDA compiler: nvcc is not in CUDA_HOME, /usr/local/cuda* or PATH");
        return err_hint(err,
                        "install the CUDA toolkit (" CUDA_LEAST " or later), or set CUDA_HOME");
    }
    if (req->candidate->target == TARGET_CUDA && !toolchain_cuda(req->tools)) {
        err_raise(err, ERR_MISSING, "'%s' is of CUDA %s, older than " CUDA_LEAST, req->tools->nvcc,
                  req->tools->nvcc_version);
        return err_hint(err, "install a later CUDA toolkit, or set CUDA_HOME to one");
    }
    return OK;
}

/* Copy what the builder left into the cache: a regular file, never a link of its making. */
enum err_code build_keep(struct arena *a, const char *built, const char *cached, struct err *err)
{
    own_fd fd = open(built, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    struct str bytes;
    if (fd < 0 || fstat(fd, &st) != 0)
        return err_sys(err, "open what was built");
    if (!S_ISREG(st.st_mode))
        return err_raise(err, ERR_FORMAT, "a compiler left no regular file");
    if (file_read(a, arena_fmt(a, "/proc/self/fd/%d", fd), (size_t)OBJECT_MAX, &bytes, err) != OK)
        return err->code;
    return file_write(cached, bytes, 0755, err);
}

static enum err_code build_fresh(struct arena *a, const struct build_request *req, const char *home,
                                 const char *cached, struct build_result *r, struct err *err)
{
    struct box_output out;
    const char *tmp = path_join(a, home, "tmp"), *dir = NULL;
    if (dir_make(tmp, dir_mode(), err) != OK || dir_temp(a, tmp, "build", &dir, err) != OK)
        return err->code;
    if (chmod(dir, dir_mode()) != 0)
        return err_sys(err, "open '%s' to the builder", dir);
    enum err_code code = lay_sources(a, req->candidate, dir, err);
    bool torch = req->candidate->contract == CONTRACT_TORCH;
    if (code == OK)
        code = torch ? torch_compile(a, req, dir, &out, err) : compile(a, req, dir, &out, err);
    if (code == OK)
        code = judge(a, req->candidate, path_join(a, dir, "out/candidate.so"), &out, r, err);
    if (code == OK && r->ok)
        code = build_keep(a, path_join(a, dir, "out/candidate.so"), cached, err);
    struct err ignored = { 0 };
    if (dir_remove(dir, &ignored) != OK && code == OK)
        return err_raise(err, ERR_SYSTEM, "clean up a build: %s", ignored.text);
    return code;
}

enum err_code build_run(struct arena *a, const struct build_request *req, struct build_result *ret,
                        struct err *err)
{
    int64_t start = clock_ms();
    const char *home = NULL;
    char key[HASH_HEX];
    struct build_result r = { 0 };
    if (compilers_here(a, req, err) != OK || home_dir(a, &home, err) != OK ||
        cache_key(a, req, key, err) != OK)
        return err->code;
    const char *dir = arena_fmt(a, "%s/build/%.2s", home, key);
    const char *cached = arena_fmt(a, "%s/%s.so", dir, key);
    if (path_exists(cached)) {
        r.ok = r.cached = true;
    } else if (dir_make(dir, 0755, err) != OK || build_fresh(a, req, home, cached, &r, err) != OK) {
        return err_within(err, "build");
    }
    r.so_path = r.ok ? cached : NULL;
    r.wall_ms = clock_ms() - start;
    *ret = r;
    return OK;
}
