/* rmt_segments.h -- how rmt and rmt_memory cut a sequence into segments, and what rmt saves for both.
** A segment begins at the start of the call, at every reset, and after S tokens; each environment has its own cuts.
** The cuts up to row t follow from `done` alone, so a run by rows needs no further state. */
#ifndef MN_RMT_SEGMENTS_H
#define MN_RMT_SEGMENTS_H
#include "transformer_layers.h"

/* The first inputs of both ops, and their options.  y stands in e's place in rmt_memory. */
enum { RMT_E, RMT_PARAMS, RMT_MEM0, RMT_DONE, RMT_INPUTS };
#define RMT_OPTIONS " | heads=1 d_head=4 d_ffn=4 segment=4 flow=gtrxl|residual|postnorm eps=1e-6"

typedef struct mn_segments {
  mn_layers layers;
  int  T, B, S, M;             /* M memory slots: M read rows, tokens, M write rows */
  long memory, kv, kept;       /* floats of one memory of all environments [B,M,D], of keys and values; of all that is kept */
  const uint8_t *done;
  const float *mem0;
} mn_segments;

/* Work the sizes out and check params; 0, or -1 with the error. */
int mn_segments_open(mn_segments *s, const mn_call *c, const char *op);

typedef struct mn_cursor {     /* the position of an environment */
  int t, tokens, full;         /* next token; tokens of the running segment; full segments before */
  bool reset;                  /* the running segment began with mem0 */
} mn_cursor;

typedef struct mn_piece {      /* tokens t .. t+n-1 of one segment */
  int b, t, n, before, full;
  bool reset, ends;            /* ends: the segment has its S tokens now */
} mn_piece;

/* The next piece of an environment, up to row limit; false: there is none. */
bool mn_next_piece(const mn_segments *s, mn_cursor *at, int b, int limit, mn_piece *p);

/* The memory that an environment's segment reads: mem0, or that which `full` segments left; kept: [1 + T/S] memories, then kv. */
static inline long mn_memory_at(const mn_segments *s, int b, int full) {
  return full * s->memory + (long)b * s->M * s->layers.D;
}
static inline const float *mn_memory(const mn_segments *s, const float *kept, int b, int full, bool reset) {
  return reset ? s->mem0 : kept + mn_memory_at(s, b, full);
}

#endif
