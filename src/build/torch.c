/* Torch candidates: a published CUDA-Agent work folder to one extension, in seconds.
 *
 * g++ spends its time on torch's headers, so they come precompiled (once for each torch, compiler
 * and set of headers), and what a file becomes is kept by its own text: who changes a .cu waits for
 * nvcc alone. All files that have to be compiled are compiled side by side.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build/build_int.h"
#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"

#define FLAGS_ID "torch 1"
#define SIDE_BY_SIDE 8
#define PCH_MS 300000
#define SOURCES_MAX (CANDIDATE_FILES_MAX + 2)

/* ---- sources ---- */

/* model_new.py as bytes of the extension. */
static const char embedded[] = "    .section .rodata\n"
                               "    .global ca_model_new, ca_model_new_bytes\n"
                               "    .balign 8\n"
                               "ca_model_new_bytes:\n"
                               "    .quad ca_model_new_end - ca_model_new\n"
                               "ca_model_new:\n"
                               "    .incbin \"model_new.py\"\n"
                               "ca_model_new_end:\n"
                               "    .byte 0\n"
                               "    .section .note.GNU-stack,\"\",@progbits\n";

static enum err_code frozen(struct arena *a, const char *name, struct str *ret, struct err *err)
{
    const char *share = NULL;
    if (share_dir(a, &share, err) != OK)
        return err->code;
    return file_read(a, arena_fmt(a, "%s/workdir/%s", share, name), 64 << 10, ret, err);
}

static const char *const frozen_names[] = { "binding.cpp", "binding_registry.h" };

enum err_code torch_identity(struct arena *a, char ret[HASH_HEX], struct err *err)
{
    struct str part[COUNT(frozen_names) + 1] = { S(FLAGS_ID) };
    for (size_t i = 0; i < COUNT(frozen_names); i++)
        if (frozen(a, frozen_names[i], &part[i + 1], err) != OK)
            return err->code;
    hash_parts(part, COUNT(part), ret);
    return OK;
}

static enum err_code frozen_lay(struct arena *a, const char *src, struct err *err)
{
    for (size_t i = 0; i < COUNT(frozen_names); i++) {
        struct str text;
        if (frozen(a, frozen_names[i], &text, err) != OK ||
            file_write(path_join(a, src, frozen_names[i]), text, 0644, err) != OK)
            return err->code;
    }
    return OK;
}

enum err_code torch_lay(struct arena *a, const struct candidate *c, const char *src,
                        struct err *err)
{
    if (dir_make(path_join(a, src, "kernels"), 0755, err) != OK ||
        file_write(path_join(a, src, "model.S"), str_from(embedded), 0644, err) != OK ||
        frozen_lay(a, src, err) != OK)
        return err->code;
    for (size_t i = 0; i < c->n_files; i++) {
        const struct source_file *f = &c->file[i];
        /* No compiler sees it, or it would belong to every object's key: the linker adds it. */
        if (strcmp(f->name, MODEL_NEW) != 0 &&
            file_write(arena_fmt(a, "%s/kernels/%s", src, f->name), f->text, 0644, err) != OK)
            return err->code;
    }
    return OK;
}

/* ---- flags ---- */

static bool has(struct str text, const char *word)
{
    return memmem(text.ptr, text.len, word, strlen(word)) != NULL;
}

static void torch_args(struct arena *a, const struct build_request *req, struct argv *v)
{
    arg(v, "-std=c++20");
    arg(v, "-isystem");
    arg(v, "/ca/torch/include");
    arg(v, "-isystem");
    arg(v, "/ca/torch/include/torch/csrc/api/include");
    arg(v, "-isystem");
    arg(v, "/ca/python");
    arg(v, "-DTORCH_EXTENSION_NAME=cuda_extension");
    arg(v, "-DTORCH_API_INCLUDE_EXTENSION_H");
    arg(v, arena_fmt(a, "-D_GLIBCXX_USE_CXX11_ABI=%d", req->torch->cxx11_abi));
}

/* The wrappers do no work of their own: -O1 compiles faster. On cpu they may be the kernels. */
static void cpp_args(struct arena *a, const struct build_request *req, struct argv *v)
{
    bool cuda = req->candidate->target == TARGET_CUDA;
    arg(v, req->tools->gxx);
    arg(v, cuda ? "-O1" : "-O3");
    if (!cuda) {
        arg(v, "-march=native");
        arg(v, "-fopenmp");
    }
    arg(v, "-fPIC");
    arg(v, "-w");
    torch_args(a, req, v);
    if (cuda) {
        arg(v, "-isystem");
        arg(v, arena_fmt(a, "%s/include", req->tools->cuda_root));
    }
}

/* As torch's own builder calls nvcc, with the published work folder's --use_fast_math. */
static void cu_args(struct arena *a, const struct build_request *req, struct argv *v)
{
    arg(v, req->tools->nvcc);
    arg(v, "-O3");
    arg(v, "--use_fast_math");
    arg(v, "--expt-relaxed-constexpr");
    arg(v, arena_fmt(a, "-gencode=arch=compute_%s,code=sm_%s", req->cuda_arch, req->cuda_arch));
    arg(v, "-cudart=shared");
    arg(v, "-Xcompiler=-fPIC");
    arg(v, "-D__CUDA_NO_HALF_OPERATORS__");
    arg(v, "-D__CUDA_NO_HALF_CONVERSIONS__");
    arg(v, "-D__CUDA_NO_BFLOAT16_CONVERSIONS__");
    arg(v, "-D__CUDA_NO_HALF2_OPERATORS__");
    torch_args(a, req, v);
}

static void c_args(const struct build_request *req, struct argv *v)
{
    arg(v, req->tools->gcc);
    arg(v, "-O3");
    arg(v, "-march=native");
    arg(v, "-fopenmp");
    arg(v, "-fPIC");
}

static enum err_code key_of(struct arena *a, const struct build_request *req, const struct argv *v,
                            struct str text, char ret[HASH_HEX], struct err *err)
{
    struct str *part = arena_new(a, struct str, ARGS_MAX + 7);
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        part[n++] = str_from(v->v[i]);
    part[n++] = text;
    part[n++] = str_from(req->tools->gcc_version);
    part[n++] = str_from(req->tools->nvcc_version);
    part[n++] = str_from(req->torch->site);
    part[n++] = str_from(req->torch->version);
    if (req->candidate->target == TARGET_CPU && build_processor(a, &part[n++], err) != OK)
        return err->code;
    hash_parts(part, n, ret);
    return OK;
}

/* ---- precompiled headers ---- */

static const char wrapper_headers[] = "#include <torch/types.h>\n"
                                      "#include <torch/csrc/utils/pybind.h>\n"
                                      "#include <pybind11/stl.h>\n";
static const char cuda_headers[] = "#include <c10/cuda/CUDAStream.h>\n"
                                   "#include <c10/cuda/CUDAGuard.h>\n"
                                   "#include <ATen/cuda/CUDAContext.h>\n"
                                   "#include <cuda_runtime.h>\n";

/* A larger set costs each file more: static data of all headers is made in each. */
static const char *headers_for(struct arena *a, enum target target, struct str text)
{
    bool all =
        has(text, "torch/extension.h") || has(text, "torch/torch.h") || has(text, "torch/all.h");
    return arena_fmt(a, "%s%s%s", all ? "#include <torch/extension.h>\n" : "", wrapper_headers,
                     target == TARGET_CUDA ? cuda_headers : "");
}

/* DIR/pch/torch.h with its precompiled form beside it, from the cache or made now. */
static enum err_code pch_lay(struct arena *a, const struct build_request *req, const char *dir,
                             const char *headers, struct err *err)
{
    struct argv v = { 0 };
    char key[HASH_HEX];
    const char *home = NULL;
    struct box_output out;
    if (home_dir(a, &home, err) != OK)
        return err->code;
    cpp_args(a, req, &v);
    if (key_of(a, req, &v, str_from(headers), key, err) != OK)
        return err->code;
    const char *cache = path_join(a, home, "pch"), *pch = path_join(a, dir, "pch");
    const char *cached = arena_fmt(a, "%s/%s.gch", cache, key);
    if (dir_make(cache, 0755, err) != OK || dir_make(pch, 0755, err) != OK ||
        file_write(path_join(a, pch, "torch.h"), str_from(headers), 0644, err) != OK)
        return err->code;
    if (!path_exists(cached)) {
        arg(&v, "-x");
        arg(&v, "c++-header");
        arg(&v, "/ca/pch/torch.h");
        arg(&v, "-o");
        arg(&v, "/ca/out/torch.h.gch");
        if (build_boxed(a, req, dir, path_join(a, dir, "out"), &v, PCH_MS, &out, err) != OK)
            return err->code;
        const char *made = path_join(a, dir, "out/torch.h.gch");
        if (out.result.end != BOX_EXITED || out.result.status != 0 || !path_exists(made))
            return err_raise(err, ERR_MISSING, "torch's headers do not compile here: %.*s",
                             (int)(out.err_out.len < 300 ? out.err_out.len : 300), out.err_out.ptr);
        if (rename(made, cached) != 0 || chmod(cached, 0644) != 0)
            return err_sys(err, "keep precompiled headers");
    }
    if (link(cached, path_join(a, pch, "torch.h.gch")) != 0)
        return err_sys(err, "lay precompiled headers");
    return OK;
}

/* ---- files to objects ---- */

struct unit {
    const char *dir;  /* its src/ and pch/ are the box's */
    const char *name; /* below /ca/src */
    const char *pch;  /* its set of headers, or NULL */
    struct argv v;
    char key[HASH_HEX];
    const char *cached;
    bool ready;
    struct box_output out;
    enum err_code code;
    struct err err;
    struct arena arena;
};

struct work {
    const struct build_request *req;
    const char *dir;
    int64_t until;
    struct unit unit[SOURCES_MAX];
    size_t n;
    _Atomic size_t next;
};

/* Any source may include another: all of kernels/ counts (c == NULL: none is in reach).
 * model_new.py is not there yet. */
static enum err_code sources_hash(struct arena *a, const struct candidate *c, struct str text,
                                  char ret[HASH_HEX], struct err *err)
{
    struct str *part = arena_new(a, struct str, 2 * CANDIDATE_FILES_MAX + 2);
    char identity[HASH_HEX];
    size_t n = 0;
    if (torch_identity(a, identity, err) != OK)
        return err->code;
    part[n++] = str_from(identity);
    part[n++] = text;
    for (size_t i = 0; c != NULL && i < c->n_files; i++)
        if (strcmp(c->file[i].name, MODEL_NEW) != 0) {
            part[n++] = str_from(c->file[i].name);
            part[n++] = c->file[i].text;
        }
    hash_parts(part, n, ret);
    return OK;
}

static enum err_code unit_add(struct arena *a, struct work *w, const char *dir, const char *name,
                              struct str text, struct err *err)
{
    const struct build_request *req = w->req;
    struct unit *u = &w->unit[w->n++];
    const char *home = NULL;
    bool alone = dir != w->dir;
    if (home_dir(a, &home, err) != OK)
        return err->code;
    struct str n = str_from(name);
    u->dir = dir;
    u->name = name;
    if (str_ends(n, S(".cu"))) {
        cu_args(a, req, &u->v);
    } else if (str_ends(n, S(".cpp"))) {
        cpp_args(a, req, &u->v);
        u->pch = alone ? NULL : headers_for(a, req->candidate->target, text);
    } else {
        c_args(req, &u->v);
    }
    arg(&u->v, "-I/ca/src");
    arg(&u->v, "-I/ca/src/kernels");
    char sources[HASH_HEX];
    if (sources_hash(a, alone ? NULL : req->candidate, text, sources, err) != OK ||
        key_of(a, req, &u->v, str_from(sources), u->key, err) != OK)
        return err->code;
    u->cached = arena_fmt(a, "%s/build/%.2s/%s.o", home, u->key, u->key);
    u->ready = path_exists(u->cached);
    return dir_make(arena_fmt(a, "%s/build/%.2s", home, u->key), 0755, err);
}

static enum err_code unit_compile(struct work *w, struct unit *u, struct err *err)
{
    /* A folder for each box: it comes to belong to the box's uid. */
    const char *out = arena_fmt(&u->arena, "%s/out-%zu", w->dir, (size_t)(u - w->unit));
    if (u->pch != NULL) {
        arg(&u->v, "-include");
        arg(&u->v, "/ca/pch/torch.h");
    }
    arg(&u->v, "-c");
    arg(&u->v, arena_fmt(&u->arena, "/ca/src/%s", u->name));
    arg(&u->v, "-o");
    arg(&u->v, "/ca/out/unit.o");
    if (dir_make(out, dir_mode(), err) != OK ||
        build_boxed(&u->arena, w->req, u->dir, out, &u->v, w->until - clock_ms(), &u->out, err) !=
            OK)
        return err->code;
    if (u->out.result.end != BOX_EXITED || u->out.result.status != 0)
        return OK;
    return build_keep(&u->arena, path_join(&u->arena, out, "unit.o"), u->cached, err);
}

static void *compile_some(void *arg_)
{
    struct work *w = arg_;
    for (size_t i = w->next++; i < w->n; i = w->next++)
        if (!w->unit[i].ready)
            w->unit[i].code = unit_compile(w, &w->unit[i], &w->unit[i].err);
    return NULL;
}

/* The candidate's wrappers want one set of headers: the largest that one of them wants. */
static enum err_code lay_headers(struct arena *a, struct work *w, struct err *err)
{
    const char *most = NULL;
    for (size_t i = 0; i < w->n; i++) {
        const char *pch = w->unit[i].ready ? NULL : w->unit[i].pch;
        if (pch != NULL && (most == NULL || strlen(pch) > strlen(most)))
            most = pch;
    }
    return most != NULL ? pch_lay(a, w->req, w->dir, most, err) : OK;
}

static void compile_all(struct work *w)
{
    pthread_t thread[SIDE_BY_SIDE];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int n = 0, want = cores < SIDE_BY_SIDE ? (int)cores : SIDE_BY_SIDE;
    while (n + 1 < want && pthread_create(&thread[n], NULL, compile_some, w) == 0)
        n++;
    compile_some(w);
    while (n > 0)
        pthread_join(thread[--n], NULL);
}

/* A folder without kernels/: what binding.cpp becomes is then the same for all candidates. */
static enum err_code frozen_alone(struct arena *a, const char *dir, const char **ret,
                                  struct err *err)
{
    const char *alone = path_join(a, dir, "frozen"), *src = path_join(a, alone, "src");
    if (dir_make(alone, dir_mode(), err) != OK || dir_make(src, 0755, err) != OK ||
        frozen_lay(a, src, err) != OK)
        return err->code;
    *ret = alone;
    return OK;
}

static enum err_code units_find(struct arena *a, struct work *w, struct err *err)
{
    const struct candidate *c = w->req->candidate;
    const char *alone = NULL;
    struct str text;
    if (frozen_alone(a, w->dir, &alone, err) != OK || frozen(a, "binding.cpp", &text, err) != OK ||
        unit_add(a, w, alone, "binding.cpp", text, err) != OK)
        return err->code;
    for (size_t i = 0; i < c->n_files; i++)
        if (build_is_source(c->file[i].name) &&
            unit_add(a, w, w->dir, arena_fmt(a, "kernels/%s", c->file[i].name), c->file[i].text,
                     err) != OK)
            return err->code;
    return OK;
}

static enum err_code model_lay(struct arena *a, const struct work *w, struct err *err)
{
    const struct candidate *c = w->req->candidate;
    for (size_t i = 0; i < c->n_files; i++)
        if (strcmp(c->file[i].name, MODEL_NEW) == 0)
            return file_write(arena_fmt(a, "%s/src/" MODEL_NEW, w->dir), c->file[i].text, 0644,
                              err);
    return err_raise(err, ERR_FORMAT, "a torch candidate without " MODEL_NEW);
}

static enum err_code link_all(struct arena *a, const struct work *w, struct box_output *ret,
                              struct err *err)
{
    const struct build_request *req = w->req;
    bool cuda = req->candidate->target == TARGET_CUDA;
    const char *out = path_join(a, w->dir, "out");
    struct argv v = { 0 };
    if (dir_make(arena_fmt(a, "%s/src/objects", w->dir), 0755, err) != OK ||
        model_lay(a, w, err) != OK)
        return err->code;
    arg(&v, req->tools->gxx);
    arg(&v, "-shared");
    arg(&v, "-fopenmp");
    arg(&v, "/ca/src/model.S");
    for (size_t i = 0; i < w->n; i++) {
        const char *object = arena_fmt(a, "objects/%zu.o", i);
        if (build_keep(a, w->unit[i].cached, arena_fmt(a, "%s/src/%s", w->dir, object), err) != OK)
            return err->code;
        arg(&v, arena_fmt(a, "/ca/src/%s", object));
    }
    arg(&v, "-L/ca/torch/lib");
    arg(&v, "-ltorch_python");
    arg(&v, "-ltorch");
    arg(&v, "-ltorch_cpu");
    arg(&v, "-lc10");
    if (cuda) {
        arg(&v, "-ltorch_cuda");
        arg(&v, "-lc10_cuda");
        arg(&v, arena_fmt(a, "-L%s/lib64", req->tools->cuda_root));
        arg(&v, arena_fmt(a, "-L%s/lib", req->tools->cuda_root));
        arg(&v, "-lcudart");
        if (build_mentions(req->candidate, "cublas")) {
            arg(&v, "-lcublas");
            arg(&v, "-lcublasLt");
        }
        if (build_mentions(req->candidate, "cudnn"))
            arg(&v, "-lcudnn");
    }
    arg(&v, "-o");
    arg(&v, "/ca/out/candidate.so");
    return build_boxed(a, req, w->dir, out, &v, w->until - clock_ms(), ret, err);
}

enum err_code torch_compile(struct arena *a, const struct build_request *req, const char *dir,
                            struct box_output *ret, struct err *err)
{
    struct work *w = arena_new(a, struct work, 1);
    w->req = req;
    w->dir = dir;
    if (units_find(a, w, err) != OK || lay_headers(a, w, err) != OK)
        return err->code;
    w->until = clock_ms() + req->wall_ms;
    compile_all(w);
    enum err_code code = OK;
    bool failed = false;
    for (size_t i = 0; i < w->n && code == OK && !failed; i++) {
        struct unit *u = &w->unit[i];
        code = u->code;
        *err = u->code != OK ? u->err : *err;
        failed = code == OK && !u->ready &&
                 (u->out.result.end != BOX_EXITED || u->out.result.status != 0);
        if (failed) {
            *ret = u->out;
            ret->out = str_copy(a, u->out.out);
            ret->err_out = str_copy(a, u->out.err_out);
        }
    }
    for (size_t i = 0; i < w->n; i++)
        arena_fini(&w->unit[i].arena);
    if (code != OK || failed)
        return code;
    return link_all(a, w, ret, err);
}
