#include "agent/guard.h"

#include "agent/parts.h"
#include "core/json.h"

const char loop_nudge[] =
    "You repeat yourself: the same call gives the same result. If this goes on the attempt ends. "
    "Look at what you know, change the approach, or call submit when there is nothing left to try.";

const char *answer_name(enum answer a)
{
    static const char *const names[] = {
#define X(id, name, bad) [id] = name,
        ANSWERS(X)
#undef X
    };
    return names[a];
}

bool answer_unusable(enum answer a)
{
    static const bool bad[] = {
#define X(id, name, bad) [id] = bad,
        ANSWERS(X)
#undef X
    };
    return bad[a];
}

bool answer_joins(enum answer a)
{
    return a == ANSWER_CALLS || a == ANSWER_CONTENT || a == ANSWER_PAUSED || a == ANSWER_LENGTH ||
           a == ANSWER_MARKUP || a == ANSWER_BROKEN;
}

const char *answer_nudge(enum answer a)
{
    switch (a) {
    case ANSWER_CONTENT:
        return "Nobody answers here. If there is something left to try, go on by calling a tool. "
               "If not, call submit: the attempt ends, and the best verified candidate counts.";
    case ANSWER_THINKING:
        return "That was thought only: neither words nor a call came. Think less and call a tool.";
    case ANSWER_EMPTY:
        return "An empty answer came. Go on by calling a tool.";
    case ANSWER_LENGTH:
        return "Your answer was cut at the limit of its length, and its calls were not carried "
               "out. Say less; write long files in several steps, with Write and then Edit.";
    case ANSWER_MARKUP:
        return "A call came as text and was not carried out. Use the tool interface for calls.";
    case ANSWER_BROKEN:
    case ANSWER_NONE:
    case ANSWER_CALLS:
    case ANSWER_PAUSED:
    case ANSWER_REFUSED:
    case ANSWER_OVERFLOW:
    case ANSWER_FAILED:
    case ANSWER_SUMMARY:
        break;
    }
    return NULL;
}

/* ---- what it is ---- */

static bool has_note(const json_t *response, const char *name)
{
    size_t i;
    const json_t *note;
    json_array_foreach(json_object_get(response, "notes"), i, note)
    {
        if (json_is_string(note) && strcmp(json_string_value(note), name) == 0)
            return true;
    }
    return false;
}

static bool readable(const json_t *part)
{
    own_json args = NULL;
    struct err ignored = { 0 };
    struct str text = str_trim(member_text(part, "args"));
    return text.len == 0 ||
           (json_parse(text, (size_t)8 << 20, &args, &ignored) == OK && json_is_object(args));
}

struct gist {
    size_t calls, readable;
    bool text, thought;
};

static struct gist gist_of(const json_t *response)
{
    struct gist g = { 0 };
    size_t i;
    const json_t *part;
    json_array_foreach(json_object_get(response, "parts"), i, part)
    {
        struct str kind = member_text(part, "kind");
        bool words = str_trim(member_text(part, "text")).len > 0;
        if (str_eq(kind, S("call"))) {
            g.calls++;
            g.readable += readable(part);
        } else if (str_eq(kind, S("text")))
            g.text |= words;
        else
            g.thought |= words || member_text(part, "seal").len > 0;
    }
    return g;
}

enum answer answer_of(const json_t *response)
{
    struct str end = member_text(response, "end");
    struct str fault = member_text(json_object_get(response, "fault"), "kind");
    struct gist g = gist_of(response);
    if (str_eq(member_text(response, "purpose"), S("summary")))
        return ANSWER_SUMMARY;
    if (str_eq(end, S("refused")))
        return ANSWER_REFUSED;
    if (str_eq(end, S("context")) || str_eq(fault, S("context")) || str_eq(fault, S("room")))
        return ANSWER_OVERFLOW;
    if (str_eq(end, S("failed")) || str_eq(end, S("cut")))
        return ANSWER_FAILED;
    if (str_eq(end, S("length")))
        return ANSWER_LENGTH;
    if (g.calls > 0)
        return g.readable > 0 ? ANSWER_CALLS : ANSWER_BROKEN;
    if (str_eq(end, S("paused")))
        return ANSWER_PAUSED;
    if (has_note(response, "markup") || has_note(response, "calls_lost"))
        return ANSWER_MARKUP;
    return g.text ? ANSWER_CONTENT : g.thought ? ANSWER_THINKING : ANSWER_EMPTY;
}

/* ---- circles ---- */

uint64_t action_hash(struct str a, struct str b)
{
    uint64_t h = 0xcbf29ce484222325u ^ a.len;
    for (size_t i = 0; i < a.len; i++)
        h = (h ^ (unsigned char)a.ptr[i]) * 0x100000001b3u;
    for (size_t i = 0; i < b.len; i++)
        h = (h ^ (unsigned char)b.ptr[i]) * 0x100000001b3u;
    return h;
}

static bool same(const struct action *a, const struct action *b)
{
    return a->call == b->call && a->result == b->result;
}

static enum loop judge(size_t n, size_t near, size_t found)
{
    return n >= found ? LOOP_FOUND : n >= near ? LOOP_NEAR : LOOP_NONE;
}

static enum loop worse(enum loop a, enum loop b)
{
    return a > b ? a : b;
}

/* How long the end is of which each is the same as the one `step` before. */
static size_t tail_same(const struct action *a, size_t n, size_t step)
{
    size_t run = n < step ? n : step;
    while (run < n && same(&a[n - 1 - run], &a[n - 1 - run + step]))
        run++;
    return run;
}

enum loop loop_find(const struct action *a, size_t n)
{
    size_t failing = 0, on_tree = 0;
    if (n == 0)
        return LOOP_NONE;
    const struct action *last = &a[n - 1];
    size_t repeats = tail_same(a, n, 1), pairs = tail_same(a, n, 2);
    if (last->waits)
        return judge(repeats, 12, 16);
    while (failing < n && a[n - 1 - failing].failed && a[n - 1 - failing].call == last->call)
        failing++;
    for (size_t i = 0; i < n; i++)
        on_tree += a[i].call == last->call && a[i].tree == last->tree;
    enum loop found = worse(judge(repeats, 3, 4), judge(failing, 3, 4));
    found = worse(found, judge(on_tree, 4, 5));
    return n < 2 || same(last, &a[n - 2]) ? found : worse(found, judge(pairs, 6, 8));
}
