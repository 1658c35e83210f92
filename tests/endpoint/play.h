/* endpoint/play.h -- one request to one answer.
 *
 * Includes: core. Keeps nothing of a conversation; only counts, and how often troubles struck.
 */
#ifndef ENDPOINT_PLAY_H
#define ENDPOINT_PLAY_H

#include "endpoint/answer.h"

struct stage {
    const struct disguise *disguise;
    struct script *scripts;
    size_t n_scripts;
    const char *key; /* demanded; NULL: none */
    uint64_t random;
    int64_t n_requests, n_refused, n_struck, n_connections, connections_most, n_accepted;
    char *last; /* body of the last request, heap; NULL: none yet */
};

struct http_request {
    struct str method, path, authorization, api_key, body;
};

void play(struct stage *s, const struct http_request *q, struct answer *ans);

#endif
