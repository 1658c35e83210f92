#include "core/sha256.h"

#include <string.h>

/* Fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_key[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void absorb(struct sha256 *s)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++) {
        const unsigned char *p = s->block + i * 4;
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + round_key[i] + w[i];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
}

void sha256_add(struct sha256 *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n > 0) {
        size_t at = s->bytes % 64, take = 64 - at < n ? 64 - at : n;
        memcpy(s->block + at, p, take);
        s->bytes += take;
        p += take;
        n -= take;
        if (s->bytes % 64 == 0)
            absorb(s);
    }
}

static void put_be64(unsigned char p[8], uint64_t x)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(x >> (56 - 8 * i));
}

static void pad(struct sha256 *s)
{
    unsigned char length[8], end = 0x80, zero = 0;
    put_be64(length, s->bytes * 8);
    sha256_add(s, &end, 1);
    while (s->bytes % 64 != 56)
        sha256_add(s, &zero, 1);
    sha256_add(s, length, sizeof length);
}

void sha256_start(struct sha256 *s)
{
    /* Fractional parts of the square roots of the first 8 primes. */
    *s = (struct sha256){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_part(struct sha256 *s, struct str part)
{
    unsigned char length[8];
    put_be64(length, part.len);
    sha256_add(s, length, sizeof length);
    if (part.len > 0)
        sha256_add(s, part.ptr, part.len);
}

void sha256_hex(struct sha256 *s, char ret[SHA256_HEX])
{
    static const char digit[] = "0123456789abcdef";
    pad(s);
    for (int i = 0; i < SHA256_HEX - 1; i++)
        ret[i] = digit[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    ret[SHA256_HEX - 1] = '\0';
}

void sha256_text(struct str text, char ret[SHA256_HEX])
{
    struct sha256 s;
    sha256_start(&s);
    if (text.len > 0)
        sha256_add(&s, text.ptr, text.len);
    sha256_hex(&s, ret);
}
