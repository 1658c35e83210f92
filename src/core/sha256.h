/* core/sha256.h -- SHA-256 (FIPS 180-4): names content, keeps no secret.
 *
 * Written here so that plain data links nothing. A struct may be copied on the way: a chain of
 * prefixes costs each byte once.
 */
#ifndef CORE_SHA256_H
#define CORE_SHA256_H

#include <stdint.h>

#include "core/str.h"

#define SHA256_HEX 65 /* with the NUL */

struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
};

void sha256_start(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);
void sha256_part(struct sha256 *s, struct str part);     /* its length, then it */
void sha256_hex(struct sha256 *s, char ret[SHA256_HEX]); /* ends s */
void sha256_text(struct str text, char ret[SHA256_HEX]);

#endif
