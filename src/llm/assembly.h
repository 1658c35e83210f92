/* llm/assembly.h -- bytes of an answer to one reply.
 *
 * Takes the body of a 2xx answer as it comes, cut anywhere: server-sent events of either dialect,
 * or one JSON body (also where a stream was asked for). Time is linear in the bytes.
 *
 * Includes: core. Errors: none of its own; what is wrong with the answer is in the reply.
 * Memory: everything in the arena that was passed; it must outlive the reply.
 */
#ifndef LLM_ASSEMBLY_H
#define LLM_ASSEMBLY_H

#include "llm/reply.h"

enum dialect { DIALECT_OPENAI, DIALECT_ANTHROPIC };

struct assembly_spec {
    enum dialect dialect;
    bool streamed;                 /* a stream was asked for */
    bool name_fragments;           /* this server sends tool names in pieces */
    bool think_open;               /* its template opens <think> in the prompt */
    uint64_t id_seed;              /* ids that must be minted follow from it */
    size_t bytes_max;              /* of the whole answer; 0: ASSEMBLY_BYTES_MAX */
    size_t prompt_bytes;           /* what was sent, for estimates; 0: unknown */
    const struct chat_tool *tools; /* their schemas guide repairs */
    size_t n_tools;
};

#define ASSEMBLY_BYTES_MAX ((size_t)64 << 20)
#define ASSEMBLY_CALLS_MAX 256
#define ASSEMBLY_TOKENS_MAX ((size_t)4 << 20)

struct assembly;

/* The spec is copied; what it points to must outlive the assembly. */
struct assembly *assembly_create(struct arena *a, const struct assembly_spec *spec);

/* False when nothing that follows can change the reply: the end has come, or a fault. */
bool assembly_feed(struct assembly *as, struct str bytes);

/* The answer said that it is whole: [DONE], message_stop, or a whole JSON body. */
bool assembly_done(const struct assembly *as);

/* No more bytes. Once. */
void assembly_end(struct assembly *as, struct reply *ret);

/* The text so far, until the next feed. */
struct str assembly_text(const struct assembly *as);

#endif
