#include "agent/objects.h"

#include "sys/file.h"

enum err_code objects_put(const char *dir, struct str bytes, char ret_hash[SHA256_HEX],
                          struct err *err)
{
    own_arena tmp = { 0 };
    char hash[SHA256_HEX];
    sha256_text(bytes, hash);
    const char *path = path_join(&tmp, dir, hash);
    if (!path_exists(path) && file_write(path, bytes, 0444, err) != OK)
        return err->code;
    memcpy(ret_hash, hash, sizeof hash);
    return OK;
}

static bool is_hash(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (strchr("0123456789abcdef", s.ptr[i]) == NULL || s.ptr[i] == '\0')
            return false;
    return s.len == SHA256_HEX - 1;
}

enum err_code objects_get(struct arena *a, const char *dir, struct str hash, struct str *ret,
                          struct err *err)
{
    own_arena tmp = { 0 };
    char now[SHA256_HEX];
    struct str bytes;
    if (!is_hash(hash))
        return err_raise(err, ERR_FORMAT, "'%.*s' names no object",
                         (int)(hash.len < 70 ? hash.len : 70), hash.ptr);
    const char *path = path_join(&tmp, dir, str_z(&tmp, hash));
    if (file_read(a, path, OBJECT_BYTES_MAX, &bytes, err) != OK)
        return err->code;
    sha256_text(bytes, now);
    if (!str_eq(str_from(now), hash))
        return err_raise(err, ERR_FORMAT, "'%s' does not hold what its name says", path);
    *ret = bytes;
    return OK;
}
