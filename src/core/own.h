/* core/own.h -- scopes that own: descriptors, heap blocks, JSON references.
 *
 * Every exit is a plain `return`; the thing closes itself. *_take() hands it over.
 */
#ifndef CORE_OWN_H
#define CORE_OWN_H

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static inline void own_fd_drop(int *fd)
{
    int saved = errno; /* a cleanup must not hide the error that caused it */
    if (*fd >= 0)
        close(*fd);
    errno = saved;
}

static inline void own_mem_drop(void *slot)
{
    int saved = errno;
    free(*(void **)slot);
    errno = saved;
}

static inline void own_json_drop(json_t **j)
{
    json_decref(*j);
}

#define own_fd __attribute__((cleanup(own_fd_drop))) int
#define own_mem __attribute__((cleanup(own_mem_drop)))
#define own_json __attribute__((cleanup(own_json_drop))) json_t *

static inline int own_fd_take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static inline json_t *own_json_take(json_t **j)
{
    json_t *taken = *j;
    *j = NULL;
    return taken;
}

#endif
