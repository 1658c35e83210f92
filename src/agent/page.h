/* agent/page.h -- an episode as one HTML file that needs nothing else.
 *
 * Everything of others is escaped and made visible (export_html); a policy in the page allows
 * its own style and its own script, by hash, and no address at all. Texts are cut to one length
 * that keeps the page below a ceiling, and say where the whole is.
 *
 * Includes: core, llm. Errors: none.
 */
#ifndef AGENT_PAGE_H
#define AGENT_PAGE_H

#include "agent/export.h"

#define PAGE_BYTES_MAX                                                        \
    ((size_t)1900 * 1024) /* kept while texts of PAGE_TEXT_MIN bytes allow it \
                           */
#define PAGE_TEXT_MAX ((size_t)24 * 1024)
#define PAGE_TEXT_MIN ((size_t)256)

void page_write(const struct trace *t, FILE *out);

/* ---- for the page's own parts ---- */

struct page {
    const struct trace *t;
    struct buf *b;
    size_t text_max; /* bytes of one text of others */
};

extern const char page_style[], page_script[], page_script_hash[]; /* page_look.c */

void page_text(const struct page *p, struct str s); /* escaped, in the line */
/* A block that can be folded: open when `text` is short. `seq`: where the whole is. */
void page_block(const struct page *p, const char *label, struct str detail, struct str text,
                const json_t *event);
void page_diff(const struct page *p, struct str diff, const json_t *event);
void page_verdict(const struct page *p, const json_t *eval); /* page_verdict.c */
void page_plots(const struct page *p);                       /* page_plot.c */

/* Of the window, in percent; false: not known. */
bool page_context(const struct trace *t, const struct trace_turn *turn, double *ret);

#endif
