/* endpoint/script.h -- conversations that are played, as data.
 *
 * A script is a list of turns: what a model that is not there says, turn by turn. Which turn comes
 * is found in each request anew (script_turn), so that one script serves any number of
 * conversations at once and a request may be sent twice.
 *
 * Includes: core, sys. Errors: ERR_FORMAT for a file that is no script, with its place.
 */
#ifndef ENDPOINT_SCRIPT_H
#define ENDPOINT_SCRIPT_H

#include <regex.h>

#include "core/field.h"
#include "core/json.h"
#include "endpoint/talk.h"

enum pieces { PIECES_TOKENS, PIECES_WORDS, PIECES_WHOLE };

#define ENDS(X)                     \
    X(END_STOP, "stop")             \
    X(END_LENGTH, "length")         \
    X(END_CONTEXT, "context")       \
    X(END_PAUSE, "pause")           \
    X(END_NONE, "none")             \
    X(END_REFUSED, "refused")       \
    X(END_REFUSED_FIELD, "refusal") \
    X(END_REFUSED_FILTER, "filter") \
    X(END_ABORT, "abort")

enum end {
#define X(id, name) id,
    ENDS(X)
#undef X
};

/*    id, name, HTTP status; 0: the answer begins well */
#define TROUBLES(X)                                                             \
    X(TROUBLE_RATE, "rate", 429)                                                \
    X(TROUBLE_QUOTA, "quota", 429)                                              \
    X(TROUBLE_SERVER, "server", 500)                                            \
    X(TROUBLE_OVERLOADED, "overloaded", 503)                                    \
    X(TROUBLE_AUTH, "auth", 401)                                                \
    X(TROUBLE_CONTEXT, "context", 400)                                          \
    X(TROUBLE_FILTER, "filter", 400)                                            \
    X(TROUBLE_GARBAGE, "garbage", 0)                                            \
    X(TROUBLE_CUT, "cut", 0)     /* the connection ends after so many events */ \
    X(TROUBLE_RESET, "reset", 0) /* the same, with a reset */                   \
    X(TROUBLE_ERROR, "error", 0) /* an error object inside of the stream */     \
    X(TROUBLE_HANG, "hang", 0)   /* nothing more comes after so many events */

enum trouble_kind {
#define X(id, name, status) id,
    TROUBLES(X)
#undef X
};

/* Strikes the first `times` requests of its turn (-1: all), each with the chance `share`. */
struct trouble {
    enum trouble_kind kind;
    int64_t times, after;
    double share;
    bool streams;            /* of streams only */
    const char *retry_after; /* NULL: no such header */
    int64_t n_struck;
};

struct turn_call {
    const char *name;
    struct str args; /* as it is sent, be it no JSON */
};

/* Where the conversation goes on when `on` matches. */
struct jump {
    enum { JUMP_RESULT, JUMP_USER } on;
    regex_t pattern;
    size_t turn;
};

struct jumps {
    struct jump *v;
    size_t n;
};

struct turn {
    const char *name;
    struct str thinking, text; /* $1 in the text: what the pattern's group has caught */
    struct turn_call *calls;
    size_t n_calls;
    bool markup; /* calls as text, as a server without a parser sends them */
    enum end end;
    enum pieces pieces;
    int64_t delay_ms, pace_ms;     /* before the first byte; between pieces */
    int64_t cut_bytes;             /* written in runs of so many bytes; 0: an event at a time */
    int64_t input, cached, output; /* of usage; -1: counted */
    struct jumps next;             /* after its results; else the turn behind it */
    size_t then;
    struct trouble *troubles;
    size_t n_troubles;
    int64_t n_played;
};

struct script {
    const char *model; /* what a request calls it by */
    int64_t window;    /* tokens */
    struct turn *turns;
    size_t n_turns;
    struct jumps start;
};

MUST_USE
enum err_code script_read(struct arena *a, const char *path, struct script *ret, struct err *err);
void script_fini(struct script *s); /* patterns */

#define GROUPS 2 /* of a pattern: the whole, $1 */

/* Which turn answers this conversation, and its place (how many answers came before). `prefix`
 * belongs to ids of calls, which tell the turn that they came from. caught[1] is the group of the
 * pattern that led here. */
struct turn *script_turn(struct arena *a, struct script *s, const struct talk *talk,
                         const struct id_form *ids, size_t *ret_place, struct str caught[GROUPS]);

#endif
