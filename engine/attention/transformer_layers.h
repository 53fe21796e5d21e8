/* transformer_layers.h -- a stack of transformer layers over rows, for an op that loops over segments itself.
** rmt's memory is the top layer's output for the previous segment, so it cannot be built of one op per layer: the
** bottom layer of a segment needs the top layer of the last.  So the layers are here, forward and backward, with the
** residual flows of lua/mneme/models/block.lua.
**
** A segment of one environment has slots: its read rows, its tokens, its write rows.  Keys and values of all slots of all
** layers are in kv [L, batch, slots, 2A].  A row sees slots from the first up to one that depends on its kind:
** reads see the reads, a token sees all up to itself, writes see everything. */
#ifndef MN_TRANSFORMER_LAYERS_H
#define MN_TRANSFORMER_LAYERS_H
#include "op.h"

enum { MN_GTRXL, MN_RESIDUAL, MN_POSTNORM };

typedef struct mn_layers {
  mn_ctx *ctx;
  int   L, D, H, A, F;         /* layers, width, heads, numbers of all heads, hidden width */
  int   flow;
  float eps;
  int   reads, slots, batch;
  const float *params;         /* [L, mn_layer_places().end]: weights are [out,in], in the order of struct mn_layer_place */
} mn_layers;

typedef struct mn_layer_place {   /* where a layer's parameters begin; last: their number */
  long qkv, qkv_bias, out, out_bias, norm[2], ffn0, ffn0_bias, ffn1, ffn1_bias;
  long gate[2];                /* w [3,D,D], u [3,D,D], bias [D]; only flow gtrxl */
  long end;
} mn_layer_place;

typedef struct mn_rows {       /* rows of one environment's segment, in consecutive slots */
  int b, row, n, slot;      /* first row, how many, and the first one's slot */
  int tokens;                  /* of the segment so far, these included */
} mn_rows;

mn_layer_place mn_layer_places(const mn_layers *m);

/* Sizes in floats: packed weights of all layers; activations of that many rows. */
long mn_layers_panels(const mn_layers *m);
long mn_layers_acts(const mn_layers *m, int rows);

void mn_layers_pack(const mn_layers *m, float *panels);

/* The input is in the first rows*D numbers of acts; returns the output [rows,D], which is in acts too.  The rows'
** keys and values are put into kv, and those of earlier rows are found there.  Uses mn_scratch 2. */
float *mn_layers_forward(const mn_layers *m, const float *panels, int rows, const mn_rows *part, int parts, float *kv,
                         float *acts);

/* dx: in, the gradient of the output; out, of the input.  dkv: in, gradients of kv from elsewhere; out, of the slots
** that are not among the rows (the rows' own become 0).  dparams: added to, unless NULL.  Uses mn_scratch 1 and 2. */
void mn_layers_backward(const mn_layers *m, int rows, const mn_rows *part, int parts, const float *kv, float *dkv,
                        float *acts, float *dx, float *dparams);

/* ---- between transformer_layers.c and transformer_layers_backward.c ---- */

typedef struct mn_half {       /* of a layer: attention, or feed-forward; [rows, ...] each */
  float *x, *n, *stats, *o;    /* input; normalised (postnorm: the sum before its norm); mean and scale; what is joined */
  float *pre, *rx;             /* of the gate */
} mn_half;
typedef struct mn_acts { mn_half half[2]; float *qkv, *a, *hidden, *y; } mn_acts;

mn_acts mn_acts_of(const mn_layers *m, float *acts, int rows, int layer);

/* How many slots a row sees. */
static inline int mn_seen(const mn_layers *m, const mn_rows *p, int slot) {
  if (slot < m->reads) return m->reads;
  return slot < m->reads + p->tokens ? slot + 1 : m->reads + p->tokens + m->reads;
}

/* The keys of an environment and layer, slot by slot, 2A numbers apart; values follow A numbers later. */
static inline long mn_kv_at(const mn_layers *m, int layer, int b) {
  return ((long)layer * m->batch + b) * m->slots * 2 * m->A;
}

/* s = softmax of q.k over the slots seen. */
void mn_layer_weights(int dh, int stride, int seen, const float *q, const float *k, float *s);

#endif
