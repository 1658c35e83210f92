#include <string.h>

#include "core/sha256.h"
#include "task/candidate.h"

void hash_parts(const struct str *part, size_t n, char ret[HASH_HEX])
{
    struct sha256 s;
    char hex[SHA256_HEX];
    sha256_start(&s);
    for (size_t i = 0; i < n; i++)
        sha256_part(&s, part[i]);
    sha256_hex(&s, hex);
    memcpy(ret, hex, HASH_HEX - 1);
    ret[HASH_HEX - 1] = '\0';
}
