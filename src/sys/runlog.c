#include "sys/runlog.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/json.h"
#include "sys/clock.h"
#include "sys/file.h"

#define LOG_MAX ((size_t)1 << 30)
#define LINE_MAX_BYTES ((size_t)32 << 20)

static enum err_code line_parse(struct str line, json_t *events, struct err *err)
{
    own_json j = NULL;
    struct str name;
    int64_t version;
    if (json_parse(line, LINE_MAX_BYTES, &j, err) != OK ||
        json_get_int(j, "v", &version, err) != OK || json_get_text(j, "event", &name, err) != OK)
        return err->code;
    if (version != 1)
        return err_raise(err, ERR_FORMAT, "version %lld, wanted 1", (long long)version);
    json_array_append(events, j);
    return OK;
}

enum err_code runlog_parse(struct str text, json_t **ret_events, size_t *ret_whole, struct err *err)
{
    own_json events = json_array();
    struct str rest = text, line;
    while (rest.len > 0 && memchr(rest.ptr, '\n', rest.len) != NULL) {
        str_cut(&rest, '\n', &line);
        if (line_parse(line, events, err) != OK)
            return err_within(err, "line %zu", json_array_size(events) + 1);
    }
    *ret_whole = text.len - rest.len;
    *ret_events = own_json_take(&events);
    return OK;
}

enum err_code runlog_open(struct arena *a, const char *path, struct runlog *ret,
                          json_t **ret_events, struct err *err)
{
    own_arena tmp = { 0 };
    struct str text;
    size_t whole;
    own_json events = NULL;
    own_fd fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(err, "open '%s'", path);
    /* Of the open file, not the process: it goes with the descriptor. */
    struct flock whole_file = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_OFD_SETLK, &whole_file) != 0) {
        err_raise(err, ERR_STATE, "another process is working in '%s'", path);
        return err_hint(err, "wait for it, or choose another folder with --out");
    }
    if (file_read(&tmp, path, LOG_MAX, &text, err) != OK)
        return err->code;
    if (runlog_parse(text, &events, &whole, err) != OK) {
        err_within(err, "'%s'", path);
        return err_hint(err, "--fresh sets this log aside and begins anew");
    }
    if (whole < text.len && ftruncate(fd, (off_t)whole) != 0)
        return err_sys(err, "cut half a line off '%s'", path);
    *ret = (struct runlog){ .fd = own_fd_take(&fd), .path = str_z(a, str_from(path)) };
    *ret_events = own_json_take(&events);
    return OK;
}

enum err_code runlog_put(struct runlog *log, const char *name, json_t *event, struct err *err)
{
    own_json body = event;
    own_json line =
        json_pack("{s:i, s:I, s:s}", "v", 1, "at", (json_int_t)clock_utc_us(), "event", name);
    if (line == NULL || body == NULL || json_object_update(line, body) != 0)
        return err_raise(err, ERR_SYSTEM, "no memory for the event '%s'", name);
    own_arena tmp = { 0 };
    own_mem char *text = json_dumps(line, JSON_COMPACT);
    if (text == NULL)
        return err_raise(err, ERR_SYSTEM, "no memory for the event '%s'", name);
    const char *whole = arena_fmt(&tmp, "%s\n", text);
    size_t n = strlen(whole);
    /* One write: a reader, or a death in between, sees all of the line or the half that
     * runlog_open() cuts off. */
    ssize_t put = write(log->fd, whole, n);
    if (put != (ssize_t)n)
        return err_sys(err, "append to '%s'", log->path);
    return OK;
}

enum err_code runlog_sync(struct runlog *log, struct err *err)
{
    return fdatasync(log->fd) == 0 ? OK : err_sys(err, "keep '%s'", log->path);
}

enum err_code runlog_add(struct runlog *log, const char *name, json_t *event, struct err *err)
{
    return runlog_put(log, name, event, err) != OK ? err->code : runlog_sync(log, err);
}

void runlog_close(struct runlog *log)
{
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
}
