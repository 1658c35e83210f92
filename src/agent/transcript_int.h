/* agent/transcript_int.h -- what the two files of the fold share. */
#ifndef AGENT_TRANSCRIPT_INT_H
#define AGENT_TRANSCRIPT_INT_H

#include "agent/transcript.h"

/* `array`: the address of a pointer to entries of `size` bytes. Room for one more than n. */
MUST_USE
enum err_code transcript_grow(void *array, size_t *cap, size_t n, size_t size, struct err *err);
MUST_USE
enum err_code said_add(struct transcript *t, struct said s, struct err *err);
MUST_USE
enum err_code view_rebuild(struct transcript *t, struct err *err);
size_t part_bytes(const struct chat_part *p);
void tokens_anchor(struct transcript *t, int64_t tokens, size_t bytes);
void transcript_flight_clear(struct transcript *t);

#endif
