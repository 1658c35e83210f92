/* Sources in, shared object or one plain reason out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "build/build.h"
#include "build/imports.h"
#include "sandbox/box.h"
#include "sys/file.h"

#define HEAD "#include \"cuda_agent.h\"\n"
#define FORWARD "int ca_forward(const struct ca_call *c) "
#define LIMIT_MS 60000
#define MAX_DOC ((size_t)256 << 10)

static struct arena life;
static const char *home;
static struct toolchain tools;

static struct build_result build(const char *const *file, int64_t wall_ms)
{
    struct candidate c = { .target = TARGET_CPU, .author = "hand" };
    for (; file[0] != NULL; file += 2)
        c.file[c.n_files++] = (struct source_file){ file[0], str_from(file[1]) };
    candidate_seal(&c);
    struct build_request req = { .candidate = &c, .tools = &tools, .wall_ms = wall_ms };
    struct build_result r = { 0 };
    struct err err = { 0 };
    if (build_run(&life, &req, &r, &err) != OK)
        fail_msg("%s", err.text);
    return r;
}

static void honest(void **state)
{
    static const char *const file[] = {
        "row.c",
        HEAD "#include <math.h>\n#include \"row.h\"\n" FORWARD
             "{ float *y = c->out.v[0].data; y[0] = sqrtf(ROW); return 0; }\n",
        "row.h", "#define ROW 16.0f\n", NULL
    };
    (void)state;
    struct build_result r = build(file, LIMIT_MS);
    assert_string_equal(r.reason, "");
    assert_true(r.ok && !r.cached && !r.forbidden && !r.timed_out);
    void *code = dlopen(r.so_path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(code);
    assert_non_null(dlsym(code, "ca_forward"));
    dlclose(code);

    struct build_result again = build(file, LIMIT_MS);
    assert_true(again.ok && again.cached);
    assert_string_equal(again.so_path, r.so_path);

    static const char *const other[] = { "row.c", HEAD FORWARD "{ (void)c; return 0; }\n", NULL };
    struct build_result second = build(other, LIMIT_MS);
    assert_true(second.ok && !second.cached);
    assert_string_not_equal(second.so_path, r.so_path);
}

/* One file asks for fast math, the other does not: each gets what it asked for. */
static void flags_of_each_file(void **state)
{
    static const char *const file[] = {
        "fast.c",
        "// ca: fast-math\n" HEAD "#ifndef __FAST_MATH__\n#error fast\n#endif\n" FORWARD
        "{ (void)c; return 0; }\n",
        "slow.c",
        "#ifdef __FAST_MATH__\n#error slow\n#endif\nint other(void);\nint other(void) "
        "{ return 1; }\n",
        NULL
    };
    (void)state;
    assert_string_equal(build(file, LIMIT_MS).reason, "");
    static const char *const late[] = { "late.c",
                                        "\n// ca: fast-math\n" HEAD
                                        "#ifdef __FAST_MATH__\n#error late\n#endif\n" FORWARD
                                        "{ (void)c; return 0; }\n",
                                        NULL };
    assert_string_equal(build(late, LIMIT_MS).reason, "");
}

static void refused(void **state)
{
    static const struct {
        const char *name, *text;
        const char *reason; /* part of it */
        bool forbidden;
    } rows[] = {
        { "the first error, at its line", HEAD FORWARD "{ return nope; }\nint f(void) { bad }\n",
          "a.c:2:", false },
        { "the same, by its text", HEAD FORWARD "{ return nope; }\n", "'nope' undeclared", false },
        { "a warning before it", HEAD "#warning careful\n" FORWARD "{ return nope; }\n", "nope",
          false },
        { "system", HEAD "#include <stdlib.h>\n" FORWARD "{ (void)c; return system(\"x\"); }\n",
          "'system' is not on the list", true },
        { "socket",
          HEAD "#include <sys/socket.h>\n" FORWARD "{ (void)c; return socket(1, 1, 0); }\n",
          "'socket' is not", true },
        { "dlopen",
          HEAD "#include <dlfcn.h>\n" FORWARD "{ (void)c; return dlopen(\"x\", 2) != 0; }\n",
          "'dlopen' is not", true },
        { "a name that nobody defines",
          HEAD "int nope(void);\n" FORWARD "{ (void)c; return nope(); }\n", "'nope' is not", true },
        { "a file of the system", HEAD "#include \"/etc/passwd\"\n", "/etc/passwd", false },
        { "a path upward", HEAD "#include \"../../../etc/passwd\"\n", "etc/passwd", false },
        { "bytes of a file", HEAD "__asm__(\".incbin \\\"/etc/shadow\\\"\");\n", "/etc/shadow",
          false },
        { "a tower of includes", HEAD "#include __FILE__\n", "nested", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *const file[] = { "a.c", rows[i].text, NULL };
        print_message("%s\n", rows[i].name);
        struct build_result r = build(file, LIMIT_MS);
        assert_true(!r.ok && !r.cached && r.so_path == NULL);
        assert_int_equal(r.forbidden, rows[i].forbidden);
        if (strstr(r.reason, rows[i].reason) == NULL)
            fail_msg("'%s' does not say '%s'", r.reason, rows[i].reason);
        assert_false(build(file, LIMIT_MS).cached); /* a refusal is not kept */
    }
}

static void time_out(void **state)
{
    static const char *const file[] = { "t.c", HEAD FORWARD "{ (void)c; return 3; }\n", NULL };
    (void)state;
    struct build_result r = build(file, 1);
    assert_true(r.timed_out && !r.ok);
    assert_non_null(strstr(r.reason, "longer than its limit"));
    assert_true(build(file, LIMIT_MS).ok); /* and that is not kept either */
}

static void no_compiler(void **state)
{
    struct candidate c = { .target = TARGET_CUDA };
    const struct toolchain none = { 0 };
    struct build_request req = { .candidate = &c, .tools = &none, .cuda_arch = "90a" };
    struct build_result r = { 0 };
    struct err err = { 0 };
    (void)state;
    assert_int_equal(build_run(&life, &req, &r, &err), ERR_MISSING);
    assert_non_null(strstr(err.hint, "CUDA_HOME"));
    c.target = TARGET_CPU;
    assert_int_equal(build_run(&life, &req, &r, &err), ERR_MISSING);
    assert_non_null(strstr(err.text, "gcc"));
}

static void allowed(void **state)
{
    static const struct {
        const char *symbol;
        bool want;
    } symbols[] = {
        { "malloc", true },
        { "expf", true },
        { "exp", true },
        { "expl", true },
        { "lgammaf_r", true },
        { "__expf_finite", true },
        { "_ZGVdN8v_expf", true },
        { "GOMP_parallel", true },
        { "cblas_sgemm", true },
        { "cudaLaunchKernel", true },
        { "cublasLtMatmul", true },
        { "memcpy", true },
        { "__memcpy_chk", true },
        { "pthread_create", true },
        { "isfinite", true },
        { "system", false },
        { "execve", false },
        { "fork", false },
        { "open", false },
        { "fopen", false },
        { "read", false },
        { "write", false },
        { "mmap", false },
        { "mprotect", false },
        { "dlopen", false },
        { "dlsym", false },
        { "syscall", false },
        { "socket", false },
        { "sendmsg", false },
        { "recvmsg", false },
        { "ptrace", false },
        { "kill", false },
        { "signal", false },
        { "sigaction", false },
        { "getenv", false },
        { "setenv", false },
        { "memfd_create", false },
        { "shm_open", false },
        { "exportf", false },
        { "f", false },
        { "", false },
        { "PyObject_Call", false },
        { "cuLaunchKernel", false },
        { "cuMemImportFromShareableHandle", false },
    };
    static const struct {
        const char *soname;
        bool want;
    } sonames[] = {
        { "libc.so.6", true },       { "libm.so.6", true },       { "libgomp.so.1", true },
        { "libcudart.so.12", true }, { "libcublas.so.13", true }, { "libopenblas.so.0", true },
        { "libdl.so.2", false },     { "libcuda.so.1", false },   { "libpython3.12.so", false },
        { "libtorch.so", false },    { "/tmp/libc.so.6", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(symbols); i++)
        if (import_allowed(symbols[i].symbol) != symbols[i].want)
            fail_msg("symbol '%s'", symbols[i].symbol);
    for (size_t i = 0; i < COUNT(sonames); i++)
        if (library_allowed(sonames[i].soname) != sonames[i].want)
            fail_msg("library '%s'", sonames[i].soname);
}

/* PyTorch's own code, by what a wrapper's compiler would ask for. */
static void allowed_of_torch(void **state)
{
    static const struct {
        const char *symbol;
        bool want;
    } symbols[] = {
        { "_ZN2at4_ops5empty10memory_format4callEv", true },
        { "_ZNK2at10TensorBase8data_ptrIfEEPT_v", true },
        { "_ZN3c104cuda20getCurrentCUDAStreamEa", true },
        { "_ZN6caffe28TypeMeta26error_unsupported_typemetaES0_", true },
        { "PyObject_Call", true },
        { "_ZN2at4_ops4relu4callERKNS_6TensorE", false },
        { "_ZN2at3cpu4reluERKNS_6TensorE", false },
        { "_ZN2at4cuda4reluERKNS_6TensorE", false },
        { "_ZN2at6native4reluERKNS_6TensorE", false },
        { "_ZN2at6native7mul_outE", false },
        { "_ZN2at22compositeexplicitautograd4reluE", false },
        { "_ZN2at4meta4reluERKNS_6TensorE", false },
        { "_ZN2at9functorch5xxxxxE", false },
        { "_ZN3c1010Dispatcher9singletonEv", false },
        { "_ZN5torch3jit7compileE", false },
        { "_ZN5torch4lazy10LazyTensorE", false },
        { "_ZN6fbgemm8fbgemmF16E", false },
        { "dlsym", false },
        { "mmap", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(symbols); i++)
        if (torch_import_allowed(symbols[i].symbol) != symbols[i].want)
            fail_msg("symbol '%s'", symbols[i].symbol);
}

/* The text between ```KIND and ``` of a document. */
static struct str block_of(struct str text, const char *kind)
{
    const char *head = arena_fmt(&life, "\n```%s\n", kind);
    const char *at = memmem(text.ptr, text.len, head, strlen(head));
    if (at == NULL)
        fail_msg("no %s block", kind);
    struct str rest = str_drop(text, (size_t)(at - text.ptr) + strlen(head));
    const char *end = memmem(rest.ptr, rest.len, "\n```", 4);
    assert_non_null(end);
    return str_copy(&life, (struct str){ rest.ptr, (size_t)(end - rest.ptr) + 1 });
}

static void examples_of_the_contract(void **state)
{
    struct str text;
    struct err err = { 0 };
    (void)state;
    assert_int_equal(file_read(&life, CA_SOURCE_DIR "/docs/header.md", MAX_DOC, &text, &err), OK);
    const char *const file[] = { "example.c", block_of(text, "c").ptr, NULL };
    assert_string_equal(build(file, LIMIT_MS).reason, "");

    struct candidate c = { .target = TARGET_CUDA, .n_files = 1 };
    c.file[0] = (struct source_file){ "example.cu", block_of(text, "cuda") };
    candidate_seal(&c);
    struct build_request req = { &c, &tools, "90a", LIMIT_MS, NULL };
    struct build_result r = { 0 };
    if (tools.nvcc == NULL)
        print_message("no nvcc: the cuda example is not built\n");
    else if (build_run(&life, &req, &r, &err) != OK)
        fail_msg("%s", err.text);
    assert_string_equal(r.reason, "");
}

/* Nothing of a build stays behind but what the cache took. */
static void clean(void **state)
{
    struct str *name;
    size_t n = 0;
    struct err err = { 0 };
    (void)state;
    assert_int_equal(rmdir(path_join(&life, home, "tmp")), 0); /* works when it is empty */
    assert_int_equal(dir_list(&life, home, NULL, &name, &n, &err), OK);
    assert_int_equal(n, 0);
}

static void cuda_release(void **state)
{
    static const struct {
        const char *nvcc, *version;
        bool want;
    } rows[] = { { "/nvcc", "12.4, V12.4.131", true },
                 { "/nvcc", "13.0, V13.0.88", true },
                 { "/nvcc", "12.3, V12.3.107", false },
                 { "/nvcc", "11.8, V11.8.89", false },
                 { "/nvcc", "", false },
                 { NULL, "13.0", false } };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct toolchain t = { .nvcc = rows[i].nvcc };
        snprintf(t.nvcc_version, sizeof t.nvcc_version, "%s", rows[i].version);
        assert_int_equal(toolchain_cuda(&t), rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuda_release),
        cmocka_unit_test(honest),
        cmocka_unit_test(flags_of_each_file),
        cmocka_unit_test(refused),
        cmocka_unit_test(time_out),
        cmocka_unit_test(no_compiler),
        cmocka_unit_test(allowed),
        cmocka_unit_test(allowed_of_torch),
        cmocka_unit_test(examples_of_the_contract),
        cmocka_unit_test(clean),
    };
    struct err err = { 0 };
    struct box_facts facts;
    if (box_probe(&facts, &err) != OK) {
        print_message("SKIPPED, no box here: %s\n", err.text);
        return err.code == ERR_MISSING ? 0 : 1;
    }
    if (dir_temp(&life, "/tmp", "ca-build", &home, &err) != OK)
        return 1;
    setenv("CUDA_AGENT_HOME", home, 1);
    toolchain_find(&life, NULL, &tools);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    failed += dir_remove(home, &err) != OK;
    arena_fini(&life);
    return failed;
}
