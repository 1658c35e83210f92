/* agent/export.h -- an episode as others want it: data sets, interchange, a text to read.
 *
 * Writers to a stream that is the caller's; whether it took everything is the caller's to ask
 * (ferror). Pure but for that. The formats stand in docs/agent.md.
 *
 * Includes: core, llm. Errors: ERR_FORMAT where the log's tokens are not those of its file.
 */
#ifndef AGENT_EXPORT_H
#define AGENT_EXPORT_H

#include <stdio.h>

#include "agent/trace.h"
#include "llm/assembly.h"

/* One line: {"messages", "tools", ("system",) "reward", "passed", ...}. */
MUST_USE
enum err_code export_messages(const struct trace *t, enum dialect dialect, enum trace_view view,
                              FILE *out, struct err *err);

/* A line for each stretch of tokens in which every prompt begins with all before it. `tokens`:
 * what tokens.bin holds. *ret_n: how many lines. */
MUST_USE
enum err_code export_samples(const struct trace *t, struct str tokens, FILE *out, size_t *ret_n,
                             struct err *err);

/* One object, ATIF-v1.4. */
MUST_USE
enum err_code export_atif(const struct trace *t, struct str tokens, FILE *out, struct err *err);

void export_markdown(const struct trace *t, FILE *out);

/* For a terminal: the episode a line a turn, and one turn whole. */
struct export_terminal {
    bool colour;
    int width; /* columns; longer lines are cut. 0: none is */
};

void export_view(const struct trace *t, const struct export_terminal *term, FILE *out);
/* ERR_USAGE: there is no such turn. */
MUST_USE
enum err_code export_turn(const struct trace *t, int64_t turn, const struct export_terminal *term,
                          FILE *out, struct err *err);

/* ---- tokens (export_samples.c) ---- */

struct export_tokens { /* borrowed; each value little-endian, at no alignment */
    const char *prompt, *output, *logprob;
    size_t n_prompt, n_output;
};

/* Of a response; ret->n_output 0: it has none. */
MUST_USE
enum err_code export_tokens_at(const json_t *response, struct str file, struct export_tokens *ret,
                               struct err *err);
int32_t export_id(const char *ids, size_t i);
float export_logprob(const struct export_tokens *t, size_t i); /* NaN: not known */

/* ---- texts of others (export_text.c) ---- */

/* Append s as something that can be shown: valid UTF-8; control characters, but for tabs and
 * line ends, as their pictures; characters that turn the direction of text, or show nothing, as
 * <U+202E>. */
void export_plain(struct buf *b, struct str s);
/* The same in one line: white space is a blank. At most n bytes of s, "..." after a cut. */
void export_line(struct buf *b, struct str s, size_t n);
/* The same as HTML, for text and for quoted attributes. */
void export_html(struct buf *b, struct str s);

#endif
