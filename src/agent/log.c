#include "agent/log.h"

#include <poll.h>

#define LOCK_TRIES 40
#define LOCK_WAIT_MS 50

enum err_code log_open(struct log *l, struct arena *a, const char *path, json_t **ret_events,
                       struct err *err)
{
    /* What a killed process had forked holds its lock until it has noticed. */
    for (int i = 0; runlog_open(a, path, &l->file, ret_events, err) != OK; i++) {
        if (err->code != ERR_STATE || i == LOCK_TRIES)
            return err->code;
        poll(NULL, 0, LOCK_WAIT_MS);
    }
    l->seq = (int64_t)json_array_size(*ret_events);
    return OK;
}

enum err_code log_put(struct log *l, const char *name, json_t *body, json_t **ret_event,
                      struct err *err)
{
    if (body == NULL)
        return err_raise(err, ERR_SYSTEM, "no memory for the event '%s'", name);
    if (l->broken) {
        json_decref(body);
        return err_raise(err, ERR_STATE, "'%s' could not be written before", l->file.path);
    }
    redact(l->secrets, body);
    json_object_set_new(body, "event", json_string(name));
    json_object_set_new(body, "seq", json_integer(l->seq));
    if (runlog_put(&l->file, name, json_incref(body), err) != OK) {
        json_decref(body);
        l->broken = true;
        return err->code;
    }
    l->seq++;
    *ret_event = body;
    return OK;
}

enum err_code log_sync(struct log *l, struct err *err)
{
    return l->unsynced ? OK : runlog_sync(&l->file, err);
}

void log_close(struct log *l)
{
    runlog_close(&l->file);
}

static int64_t seq_of(const json_t *event, size_t line)
{
    const json_t *seq = json_object_get(event, "seq");
    return json_is_integer(seq) ? json_integer_value(seq) : (int64_t)line;
}

static bool is_resumed(const json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "event"));
    return name != NULL && strcmp(name, "resumed") == 0;
}

json_t *log_alive(const json_t *events)
{
    json_t *alive = json_array(), *event;
    size_t i;
    json_array_foreach(events, i, event)
    {
        if (is_resumed(event)) {
            const json_t *from = json_object_get(event, "dropped_from");
            size_t n = json_array_size(alive);
            while (n > 0 && json_is_integer(from) &&
                   seq_of(json_array_get(alive, n - 1), n - 1) >= json_integer_value(from))
                json_array_remove(alive, --n);
        }
        json_array_append(alive, event);
    }
    return alive;
}
