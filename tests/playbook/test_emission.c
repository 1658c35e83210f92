/* From a traced graph to a source: kernels counted, identities seen, the unknown named, and a
 * cpu kernel compiled and compared with the formula in double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/json.h"
#include "cuda_agent.h"
#include "playbook/knobs.h"
#include "sys/file.h"
#include "sys/proc.h"

#define SHAPE "\"dtype\":\"f32\",\"shape\":[6,10],\"stride\":[10,1]}"
#define X "{\"id\":0,\"name\":\"x\"," SHAPE
#define Y(id) "{\"id\":" #id ",\"name\":\"y" #id "\"," SHAPE

static const char softmax[] = "{\"values\":[" X "," Y(1) "," Y(
    2) "],\"nodes\":["
       "{\"op\":\"aten.mul.Tensor\",\"in\":[{\"v\":0},{\"r\":0.5}],\"kw\":{},\"out\":[1]},"
       "{\"op\":\"aten._softmax.default\",\"in\":[{\"v\":1},{\"i\":-1},{\"b\":false}],\"kw\":{},"
       "\"out\":[2]}],"
       "\"inputs\":[0],\"params\":[],\"outputs\":[2]}";
static const char unknown[] = "{\"values\":[" X "," Y(1) "," Y(2) "," Y(
    3) "],\"nodes\":["
       "{\"op\":\"aten.sort.default\",\"in\":[{\"v\":0}],\"kw\":{},\"out\":[1]},"
       "{\"op\":\"aten.cumsum.default\",\"in\":[{\"v\":1},{\"i\":1}],\"kw\":{},\"out\":[2]},"
       "{\"op\":\"aten.sort.default\",\"in\":[{\"v\":2}],\"kw\":{},\"out\":[3]}],"
       "\"inputs\":[0],\"params\":[],\"outputs\":[3]}";

/* sum over the outputs of x (8, 4) @ w (4, 5): a matrix-vector product */
static const char summed[] =
    "{\"values\":["
    "{\"id\":0,\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[8,4],\"stride\":[4,1]},"
    "{\"id\":1,\"name\":\"w\",\"dtype\":\"f32\",\"shape\":[4,5],\"stride\":[5,1]},"
    "{\"id\":2,\"name\":\"p\",\"dtype\":\"f32\",\"shape\":[8,5],\"stride\":[5,1]},"
    "{\"id\":3,\"name\":\"s\",\"dtype\":\"f32\",\"shape\":[8],\"stride\":[1]}],\"nodes\":["
    "{\"op\":\"aten.mm.default\",\"in\":[{\"v\":0},{\"v\":1}],\"kw\":{},\"out\":[2]},"
    "{\"op\":\"aten.sum.dim_IntList\",\"in\":[{\"v\":2},{\"l\":[{\"i\":1}]}],\"kw\":{},\"out\":[3]}"
    "],"
    "\"inputs\":[0],\"params\":[1],\"outputs\":[3]}";

/* every float16, halved */
static const char halves[] =
    "{\"values\":["
    "{\"id\":0,\"name\":\"x\",\"dtype\":\"f16\",\"shape\":[65536],\"stride\":[1]},"
    "{\"id\":1,\"name\":\"y\",\"dtype\":\"f16\",\"shape\":[65536],\"stride\":[1]}],\"nodes\":["
    "{\"op\":\"aten.mul.Tensor\",\"in\":[{\"v\":0},{\"r\":0.5}],\"kw\":{},\"out\":[1]}],"
    "\"inputs\":[0],\"params\":[],\"outputs\":[1]}";

/* the middle of (4, 6, 5) summed, where its elements are the neighbours: (4, 5, 6) transposed */
static const char along[] =
    "{\"values\":["
    "{\"id\":0,\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[4,6,5],\"stride\":[30,1,6]},"
    "{\"id\":1,\"name\":\"y\",\"dtype\":\"f32\",\"shape\":[4,5],\"stride\":[5,1]}],\"nodes\":["
    "{\"op\":\"aten.sum.dim_IntList\",\"in\":[{\"v\":0},{\"l\":[{\"i\":1}]}],\"kw\":{},\"out\":[1]}"
    "],"
    "\"inputs\":[0],\"params\":[],\"outputs\":[1]}";

/* two results a row of x (16, 10): their sum, and the largest of what is left when its mean goes */
static const char twice[] =
    "{\"values\":["
    "{\"id\":0,\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[16,10],\"stride\":[10,1]},"
    "{\"id\":1,\"name\":\"m\",\"dtype\":\"f32\",\"shape\":[16,1],\"stride\":[1,1]},"
    "{\"id\":2,\"name\":\"d\",\"dtype\":\"f32\",\"shape\":[16,10],\"stride\":[10,1]},"
    "{\"id\":3,\"name\":\"y\",\"dtype\":\"f32\",\"shape\":[16],\"stride\":[1]},"
    "{\"id\":4,\"name\":\"z\",\"dtype\":\"f32\",\"shape\":[16],\"stride\":[1]}],\"nodes\":["
    "{\"op\":\"aten.mean.dim\",\"in\":[{\"v\":0},{\"l\":[{\"i\":1}]},{\"b\":true}],\"kw\":{},"
    "\"out\":[1]},"
    "{\"op\":\"aten.sub.Tensor\",\"in\":[{\"v\":0},{\"v\":1}],\"kw\":{},\"out\":[2]},"
    "{\"op\":\"aten.sum.dim_IntList\",\"in\":[{\"v\":0},{\"l\":[{\"i\":1}]}],\"kw\":{},\"out\":[3]}"
    ","
    "{\"op\":\"aten.amax.default\",\"in\":[{\"v\":2},{\"l\":[{\"i\":1}]}],\"kw\":{},\"out\":[4]}],"
    "\"inputs\":[0],\"params\":[],\"outputs\":[3,4]}";

static enum err_code emit_source(struct arena *a, const char *text, bool cuda, struct plan *plan,
                                 struct str *ret, struct err *err)
{
    own_json j = NULL;
    static struct graph g;
    static struct program p;
    const struct knobs k = knobs_safe;
    if (json_parse(str_from(text), 1 << 20, &j, err) != OK || graph_parse(a, j, &g, err) != OK ||
        lower_graph(a, &g, &p, err) != OK)
        return err->code;
    rewrite_program(&p);
    if (plan_program(&p, cuda, plan, err) != OK)
        return err->code;
    return (cuda ? template_cuda : template_cpu)(a, plan, &k, "test", ret, err);
}

static void one_kernel_and_always_the_same(void **state)
{
    (void)state;
    for (int cuda = 0; cuda < 2; cuda++) {
        own_arena a = { 0 };
        struct err err = { 0 };
        struct plan *plan = arena_new(&a, struct plan, 1);
        struct str first, second;
        assert_int_equal(emit_source(&a, softmax, cuda, plan, &first, &err), OK);
        assert_int_equal(plan->n_kernels, 1);
        assert_int_equal(emit_source(&a, softmax, cuda, plan, &second, &err), OK);
        assert_true(str_eq(first, second));
    }
}

static void the_unknown_is_named(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct str text;
    struct plan *plan = arena_new(&a, struct plan, 1);
    assert_int_equal(emit_source(&a, unknown, false, plan, &text, &err), ERR_TASK);
    assert_non_null(strstr(err.text, "'aten.sort.default', 'aten.cumsum.default' yet")); /* once */
}

static void a_summed_product_is_no_product(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct str text;
    struct plan *plan = arena_new(&a, struct plan, 1);
    assert_int_equal(emit_source(&a, summed, true, plan, &text, &err), OK);
    for (int i = 0; i < plan->n_kernels; i++)
        assert_int_not_equal(plan->kernel[i].kind, KERNEL_MATMUL);
    assert_null(strstr(text.ptr, "cublas"));
}

/* Compile with the system's compiler: the text is the playbook's own. */
static int (*compiled(struct arena *a, struct str text))(const struct ca_call *)
{
    struct err err = { 0 };
    const char *dir = NULL;
    struct proc_result r;
    int (*forward)(const struct ca_call *) = NULL;
    assert_int_equal(dir_temp(a, "/tmp", "emission", &dir, &err), OK);
    const char *c = path_join(a, dir, "k.c"), *so = path_join(a, dir, "k.so");
    assert_int_equal(file_write(c, text, 0600, &err), OK);
    const char *argv[] = { "gcc",     "-O2",   "-fopenmp",
                           "-shared", "-fPIC", "-I" CA_SOURCE_DIR "/include",
                           c,         "-o",    so,
                           "-lm",     NULL };
    struct proc_spec spec = { .argv = argv, .wall_ms = 60000, .out_max = 65536 };
    assert_int_equal(proc_run(a, &spec, &r, &err), OK);
    if (r.status != 0)
        fail_msg("gcc: %.*s", STR_FMT(r.err_out));
    void *lib = dlopen(so, RTLD_NOW);
    assert_non_null(lib);
    void *symbol = dlsym(lib, "ca_forward");
    memcpy(&forward, &symbol, sizeof forward);
    assert_int_equal(dir_remove(dir, &err), OK);
    return forward;
}

static void softmax_is_right(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct str text;
    struct plan *plan = arena_new(&a, struct plan, 1);
    float x[60], y[60];
    assert_int_equal(emit_source(&a, softmax, false, plan, &text, &err), OK);
    for (int i = 0; i < 60; i++)
        x[i] = (float)((i * 37) % 23) - 11;
    struct ca_value in = { .data = x }, out = { .data = y };
    struct ca_call call = { .version = CA_VERSION, .in = { 1, &in }, .out = { 1, &out } };
    assert_int_equal(compiled(&a, text)(&call), 0);
    for (int r = 0; r < 6; r++) {
        double sum = 0;
        for (int c = 0; c < 10; c++)
            sum += exp(0.5 * x[r * 10 + c]);
        for (int c = 0; c < 10; c++) /* 10 additions and an expf of a few ulp */
            assert_true(fabs(y[r * 10 + c] - exp(0.5 * x[r * 10 + c]) / sum) < 2e-6);
    }
}

__extension__ typedef _Float16 half; /* gcc's own, element by element */

static void every_half_is_right(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct str text;
    struct plan *plan = arena_new(&a, struct plan, 1);
    static uint16_t x[65536], y[65536];
    assert_int_equal(emit_source(&a, halves, false, plan, &text, &err), OK);
    for (int i = 0; i < 65536; i++)
        x[i] = (uint16_t)i;
    struct ca_value in = { .data = x }, out = { .data = y };
    struct ca_call call = { .version = CA_VERSION, .in = { 1, &in }, .out = { 1, &out } };
    assert_int_equal(compiled(&a, text)(&call), 0);
    for (int i = 0; i < 65536; i++) {
        half from, want;
        uint16_t bits;
        memcpy(&from, &x[i], sizeof from);
        want = (half)((float)from * 0.5f);
        memcpy(&bits, &want, sizeof bits);
        if (want == want) /* a NaN is any NaN */
            assert_int_equal(y[i], bits);
        else
            assert_true((y[i] & 0x7fff) > 0x7c00);
    }
}

static void neighbours_are_summed_in_the_inner_loop(void **state)
{
    (void)state;
    for (int cuda = 1; cuda >= 0; cuda--) {
        own_arena a = { 0 };
        struct err err = { 0 };
        struct str text;
        struct plan *plan = arena_new(&a, struct plan, 1);
        float x[120], y[20];
        assert_int_equal(emit_source(&a, along, cuda, plan, &text, &err), OK);
        assert_int_equal(plan->n_kernels, 1);
        assert_non_null(strstr(text.ptr, cuda ? "row_sum<32>(sum)" : "reduction(+ : sum)"));
        if (cuda)
            continue;
        for (int i = 0; i < 120; i++)
            x[i] = (float)((i * 37) % 23);
        struct ca_value in = { .data = x }, out = { .data = y };
        struct ca_call call = { .version = CA_VERSION, .in = { 1, &in }, .out = { 1, &out } };
        assert_int_equal(compiled(&a, text)(&call), 0);
        for (int i = 0; i < 20; i++) {
            float sum = 0;
            for (int r = 0; r < 6; r++)
                sum += x[i / 5 * 30 + i % 5 * 6 + r];
            assert_true(y[i] == sum); /* small whole numbers: exact in any order */
        }
    }
}

static void two_results_a_row_are_one_kernel(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct str text;
    struct plan *plan = arena_new(&a, struct plan, 1);
    float x[160], y[16], z[16];
    assert_int_equal(emit_source(&a, twice, false, plan, &text, &err), OK);
    assert_int_equal(plan->n_kernels, 1);
    for (int i = 0; i < 160; i++)
        x[i] = (float)((i * 37) % 23) - 7;
    struct ca_value in = { .data = x }, out[2] = { { .data = y }, { .data = z } };
    struct ca_call call = { .version = CA_VERSION, .in = { 1, &in }, .out = { 2, out } };
    assert_int_equal(compiled(&a, text)(&call), 0);
    for (int r = 0; r < 16; r++) {
        float sum = 0, most = -1e30f;
        for (int c = 0; c < 10; c++)
            sum += x[r * 10 + c];
        for (int c = 0; c < 10; c++)
            most = fmaxf(most, x[r * 10 + c] - sum / 10);
        assert_true(y[r] == sum);
        assert_true(fabsf(z[r] - most) < 1e-5f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_kernel_and_always_the_same),
        cmocka_unit_test(the_unknown_is_named),
        cmocka_unit_test(a_summed_product_is_no_product),
        cmocka_unit_test(softmax_is_right),
        cmocka_unit_test(every_half_is_right),
        cmocka_unit_test(two_results_a_row_are_one_kernel),
        cmocka_unit_test(neighbours_are_summed_in_the_inner_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
