#include "llm/dump.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/own.h"

struct out {
    char *ptr;
    size_t len, cap;
    bool failed;
};

static void put(struct out *o, const char *bytes, size_t n)
{
    if (o->failed)
        return;
    if (o->cap - o->len < n) {
        size_t cap = (o->cap + n) * 2;
        char *more = realloc(o->ptr, cap);
        if (more == NULL) {
            o->failed = true;
            return;
        }
        o->ptr = more;
        o->cap = cap;
    }
    memcpy(o->ptr + o->len, bytes, n);
    o->len += n;
}

static void escape(struct out *o, unsigned char c)
{
    static const char plain[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* what it is, how it is written */
    char code[8];
    for (size_t i = 0; i + 1 < sizeof plain; i += 2)
        if ((unsigned char)plain[i] == c) {
            put(o, (const char[]){ '\\', plain[i + 1] }, 2);
            return;
        }
    put(o, code, (size_t)snprintf(code, sizeof code, "\\u%04X", c));
}

/* Runs that need no escape go over whole. The text is valid UTF-8: jansson holds nothing else. */
static void put_text(struct out *o, const char *text, size_t n)
{
    size_t from = 0;
    put(o, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        put(o, text + from, i - from);
        escape(o, c);
        from = i + 1;
    }
    put(o, text + from, n - from);
    put(o, "\"", 1);
}

static void put_any(struct out *o, const json_t *j);

static void put_object(struct out *o, json_t *j)
{
    const char *key, *comma = "";
    json_t *value;
    put(o, "{", 1);
    json_object_foreach(j, key, value)
    {
        put(o, comma, strlen(comma));
        put_text(o, key, strlen(key));
        put(o, ":", 1);
        put_any(o, value);
        comma = ",";
    }
    put(o, "}", 1);
}

static void put_array(struct out *o, const json_t *j)
{
    size_t i;
    const json_t *value;
    put(o, "[", 1);
    json_array_foreach(j, i, value)
    {
        put(o, ",", i > 0);
        put_any(o, value);
    }
    put(o, "]", 1);
}

static void put_any(struct out *o, const json_t *j)
{
    if (json_is_object(j)) {
        put_object(o, (json_t *)(uintptr_t)j);
    } else if (json_is_array(j)) {
        put_array(o, j);
    } else if (json_is_string(j)) {
        put_text(o, json_string_value(j), json_string_length(j));
    } else {
        own_mem char *text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);
        o->failed |= text == NULL;
        put(o, text ? text : "", text ? strlen(text) : 0);
    }
}

char *json_bytes(const json_t *j)
{
    struct out o = { 0 };
    put_any(&o, j);
    put(&o, "", 1);
    if (!o.failed)
        return o.ptr;
    free(o.ptr);
    return NULL;
}
