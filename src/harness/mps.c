#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own.h"
#include "harness/exam_int.h"
#include "sys/file.h"

#define DEFAULT_DIR "/tmp/nvidia-mps" /* NVIDIA's own default */

enum err_code exam_refuse_mps(const char *dir, struct err *err)
{
    own_arena tmp = { 0 };
    struct stat st;
    if (dir == NULL || dir[0] == '\0')
        dir = DEFAULT_DIR;
    /* A pipe that nobody reads cannot be opened like this: the daemon is gone. */
    own_fd fd = open(path_join(&tmp, dir, "control"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
        return OK;
    err_raise(err, ERR_MISSING, "an MPS daemon listens in '%s': with it nothing can be timed", dir);
    return err_hint(err, "echo quit | nvidia-cuda-mps-control");
}
