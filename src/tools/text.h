/* tools/text.h -- bytes of others as text for a model.
 *
 * A model is told valid UTF-8 with no control characters; of long texts head and tail, and
 * where the whole lies.
 */
#ifndef TOOLS_TEXT_H
#define TOOLS_TEXT_H

#include "core/str.h"

#define TEXT_RESULT_MAX 30000 /* bytes of a result; more: head and tail */
#define TEXT_LINE_MAX 2000    /* bytes of a line */

/* Bytes of the UTF-8 character at the start of s, 0 where there is none (surrogates and overlong
 * forms are none). */
size_t text_char(struct str s);

/* Append s: what is no UTF-8 becomes U+FFFD, and so do control characters but for tabs and line
 * ends. */
void text_plain(struct buf *b, struct str s);

/* Append what a terminal would show: no colours, and of a line that was written over and over
 * (progress bars) the last. Lines longer than TEXT_LINE_MAX are cut. */
void text_terminal(struct buf *b, struct str s);

/* Append a line (without its end): plain, cut after TEXT_LINE_MAX bytes with a word about it. */
void text_line(struct buf *b, struct str line);

/* NUL within the first 8 KiB: what git takes for a binary, too. */
bool text_binary(struct str s);

/* At most n bytes of the start, or of the end, of s, cut at an end of line where one is within
 * reach. */
struct str text_head(struct str s, size_t n);
struct str text_tail(struct str s, size_t n);

/* Lines in s; one without an end counts. */
size_t text_lines(struct str s);

#endif
