/* What a compiler was made to write: the reader of ELF trusts no offset. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "build/imports.h"
#include "core/own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    const char *offender = NULL;
    char path[64];
    own_fd fd = memfd_create("object", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (imports_check(&a, path, size % 2 == 0, &offender, &err) != OK && err.text[0] == '\0')
        __builtin_trap();
    return 0;
}
