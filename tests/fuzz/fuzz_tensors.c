/* Answers of every type against references: the comparison reads what it is told to, and no more.
 */
#include <stdlib.h>
#include <string.h>

#include "device/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t item[] = { 4, 8, 2, 2 };
    if (size < 16)
        return 0;
    int dtype = data[0] % 4;
    double s, tol;
    memcpy(&s, data + 1, 8);
    tol = data[9] / 100.0;
    size_t n = (size - 16) / (8 + item[dtype]);
    double *r = malloc(n * 8 + 1);
    void *a = malloc(n * item[dtype] + 1);
    if (r != NULL && a != NULL) {
        memcpy(r, data + 16, n * 8);
        memcpy(a, data + 16 + n * 8, n * item[dtype]);
        struct compare_rule rule = { .s = s, .tol = tol };
        struct compare_result got;
        compare_floats(a, NULL, dtype, r, (int64_t)n, &rule, &got);
        if (got.misses < 0 || got.misses > (int64_t)n)
            __builtin_trap();
    }
    free(r);
    free(a);
    return 0;
}
