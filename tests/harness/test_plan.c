/* The runner's plan from the worker's answer to `bind`: what is laid where, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "ca_runner.h"
#include "core/json.h"
#include "harness/plan.h"

/* Two inputs (a tensor and a number), one parameter, one output. */
static struct value_sig in[] = {
    { .name = "x",
      .kind = CA_TENSOR,
      .dtype = CA_BF16,
      .rank = 2,
      .alias = -1,
      .shape = { 3, 4 },
      .stride = { 4, 1 },
      .bytes = 24,
      .text = "" },
    { .name = "scale", .kind = CA_REAL, .alias = -1, .r = 0.5, .text = "" },
};
static struct value_sig param[] = { { .name = "fc.weight",
                                      .kind = CA_TENSOR,
                                      .rank = 1,
                                      .alias = -1,
                                      .shape = { 4 },
                                      .stride = { 1 },
                                      .bytes = 16,
                                      .text = "" } };
static struct value_sig out[] = { { .name = "out",
                                    .kind = CA_TENSOR,
                                    .rank = 1,
                                    .alias = -1,
                                    .shape = { 3 },
                                    .stride = { 1 },
                                    .bytes = 12,
                                    .text = "" } };
static const struct signature sig = { { 2, in }, { 1, param }, { 1, out } };

#define BIND(param, sets) "{\"param\":" param ",\"sets\":[" sets "]}"
#define SET(in, out) "{\"in\":" in ",\"out\":" out "}"

static enum err_code make(const char *json, int *fd, uint64_t *bytes, int *sets, struct err *err)
{
    own_json bind = NULL;
    assert_int_equal(json_parse(str_from(json), 1 << 16, &bind, err), OK);
    return plan_make(&sig, bind, fd, bytes, sets, err);
}

static void layout(void **state)
{
    own_fd fd = -1;
    uint64_t bytes = 0;
    int sets = 0;
    struct err err = { 0 };
    (void)state;
    enum err_code code = make(
        BIND("[[0,1024]]", SET("[[0,0],null]", "[[1,256]]") "," SET("[[0,512],null]", "[[1,768]]")),
        &fd, &bytes, &sets, &err);
    assert_string_equal(code == OK ? "" : err.text, "");
    assert_int_equal(sets, 2);
    assert_int_equal(bytes, sizeof(struct ca_plan) + 4 * sizeof(struct ca_plan_value) +
                                7 * sizeof(struct ca_plan_place));
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, bytes);

    const struct ca_plan *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(p->magic, CA_MSG_MAGIC);
    assert_true(p->n_in == 2 && p->n_param == 1 && p->n_out == 1 && p->n_sets == 2);
    const struct ca_plan_value *v = (const void *)(p + 1);
    assert_string_equal(v[0].name, "x");
    assert_true(v[0].kind == CA_TENSOR && v[0].dtype == CA_BF16 && v[0].rank == 2);
    assert_true(v[0].shape[1] == 4 && v[0].stride[0] == 4 && v[0].alias == -1);
    assert_true(v[1].kind == CA_REAL && v[1].r == 0.5);
    assert_string_equal(v[2].name, "fc.weight");
    assert_string_equal(v[3].name, "out");
    static const struct ca_plan_place want[] = { { 0, 0 },  { -1, 0 },  { 1, 256 }, { 0, 512 },
                                                 { -1, 0 }, { 1, 768 }, { 0, 1024 } };
    const struct ca_plan_place *place = (const void *)(v + 4);
    for (size_t i = 0; i < COUNT(want); i++)
        assert_true(place[i].slab == want[i].slab && place[i].offset == want[i].offset);
    munmap((void *)(uintptr_t)p, bytes);
}

/* The runner gets a descriptor of it: neither side can change or shrink it any more. */
static void sealed(void **state)
{
    own_fd fd = -1;
    uint64_t bytes = 0;
    int sets = 0;
    struct err err = { 0 };
    (void)state;
    assert_int_equal(
        make(BIND("[[0,0]]", SET("[[0,0],null]", "[[0,256]]")), &fd, &bytes, &sets, &err), OK);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_ptr_equal(mmap(NULL, bytes, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

static void refused(void **state)
{
    static const struct {
        const char *name, *json, *error;
    } rows[] = {
        { "no sets member", "{\"param\":[null]}", "'sets' is missing" },
        { "no set", BIND("[null]", ""), "0 sets" },
        { "an input too few", BIND("[null]", SET("[null]", "[[0,0]]")), "1 places for 2 inputs" },
        { "an output too many", BIND("[null]", SET("[null,null]", "[[0,0],[0,0]]")),
          "2 places for 1 outputs" },
        { "no outputs member", BIND("[null]", "{\"in\":[null,null]}"), "0 places for 1 outputs" },
        { "the second set is short",
          BIND("[null]", SET("[null,null]", "[[0,0]]") "," SET("[null,null]", "[]")),
          "0 places for 1 outputs" },
        { "no parameters", BIND("[]", SET("[null,null]", "[[0,0]]")), "0 places for 1 parameters" },
        { "a negative offset", BIND("[null]", SET("[[0,-256],null]", "[[0,0]]")),
          "place 0 of inputs" },
        { "slab 64", BIND("[null]", SET("[null,null]", "[[64,0]]")), "place 0 of outputs" },
        { "a place of one number", BIND("[[0]]", SET("[null,null]", "[[0,0]]")),
          "place 0 of parameters" },
        { "a place of text", BIND("[null]", SET("[null,[\"0\",0]]", "[[0,0]]")),
          "place 1 of inputs" },
        { "a bare number", BIND("[null]", SET("[null,null]", "[7]")), "place 0 of outputs" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int fd = -7, sets = 0;
        uint64_t bytes = 0;
        struct err err = { 0 };
        print_message("%s\n", rows[i].name);
        assert_int_not_equal(make(rows[i].json, &fd, &bytes, &sets, &err), OK);
        if (strstr(err.text, rows[i].error) == NULL)
            fail_msg("'%s' does not say '%s'", err.text, rows[i].error);
        assert_int_equal(fd, -7); /* outputs are written on OK only */
    }
}

static void too_many_sets(void **state)
{
    own_json bind = json_pack("{s:[], s:[n]}", "sets", "param");
    struct err err = { 0 };
    int fd = -1, sets = 0;
    uint64_t bytes = 0;
    (void)state;
    for (int i = 0; i <= CA_SETS_MAX; i++)
        json_array_append_new(json_object_get(bind, "sets"),
                              json_pack("{s:[n,n], s:[[i,i]]}", "in", "out", 0, 0));
    assert_int_equal(plan_make(&sig, bind, &fd, &bytes, &sets, &err), ERR_WORKER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(sealed),
        cmocka_unit_test(refused),
        cmocka_unit_test(too_many_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
