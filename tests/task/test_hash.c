/* hash_parts against digests computed by another implementation (Python's hashlib). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "task/candidate.h"

/* S() as a constant initialiser. */
#define LIT(text)                 \
    {                             \
        "" text, sizeof(text) - 1 \
    }

static const struct {
    const char *name;
    struct str part[3];
    size_t n;
    const char *want;
} rows[] = {
    { "no parts: the empty message", { { 0 } }, 0, "e3b0c44298fc1c149afbf4c8996fb924" },
    { "one empty part is its length", { LIT("") }, 1, "af5570f5a1810b7af78caf4bc70a660f" },
    { "one short part", { LIT("abc") }, 1, "c3494ca1a2cf8eeb8a11ded316fb55b8" },
    { "the border between parts counts",
      { LIT("ab"), LIT("c") },
      2,
      "601d5476e2ccfe2c87a2bba7a3226597" },
    { "47 bytes and the length leave no room for the padding's length",
      { LIT("0123456789abcdef0123456789abcdef0123456789abcde"), LIT("xy") },
      2,
      "68c8b16b5fc47631ab6fd4b97b79a442" },
    { "one block exactly",
      { LIT("0123456789abcdef0123456789abcdef0123456789abcdef01234567") },
      1,
      "025137646d8f105670b40d5f0814cdbb" },
};

static void known_digests(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char got[HASH_HEX];
        print_message("%s\n", rows[i].name);
        hash_parts(rows[i].part, rows[i].n, got);
        assert_string_equal(got, rows[i].want);
    }
}

static void a_long_part(void **state)
{
    (void)state;
    static char zeros[1000000];
    struct str part = { zeros, sizeof zeros };
    char got[HASH_HEX];
    hash_parts(&part, 1, got);
    assert_string_equal(got, "063577f204886ee5e407fd51b058344c");
}

static void sealing(void **state)
{
    (void)state;
    struct candidate a = { .target = TARGET_CPU, .n_files = 1 }, b, c, d;
    a.file[0] = (struct source_file){ "k.c", S("int x;") };
    b = c = d = a;
    b.target = TARGET_CUDA;
    c.file[0].name = "l.c";
    d.author = "somebody else";
    candidate_seal(&a), candidate_seal(&b), candidate_seal(&c), candidate_seal(&d);
    assert_string_not_equal(a.hash, b.hash);
    assert_string_not_equal(a.hash, c.hash);
    struct candidate e = { .target = TARGET_CPU, .n_files = 2 }, f = e;
    e.file[0] = f.file[1] = (struct source_file){ "a.c", S("1") };
    e.file[1] = f.file[0] = (struct source_file){ "b.c", S("2") };
    candidate_seal(&e), candidate_seal(&f);
    assert_string_equal(e.hash, f.hash);
    assert_string_equal(f.file[0].name, "a.c");
    assert_string_equal(a.hash, d.hash); /* who wrote it is no part of what it is */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_digests),
        cmocka_unit_test(a_long_part),
        cmocka_unit_test(sealing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
