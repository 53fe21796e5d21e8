/* scalar_decay_chunk.h -- sixteen tokens of linear attention whose decay is one number per token, or 1. */
#ifndef MN_SCALAR_DECAY_CHUNK_H
#define MN_SCALAR_DECAY_CHUNK_H
#include "matrix_state.h"

/* Does all of the state decay by one number a token: no gate on keys or values, or a scalar one? */
static inline bool mn_even(const mn_attention *a) {
  return !a->Dg && a->kept_k != MN_KEPT_EACH && a->kept_v == MN_KEPT_ALL && !a->c->in[a->gate_v].data;
}

void mn_scalar_decay_chunk(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                   mn_chunk_state to, float *work);
void mn_scalar_decay_advance(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                     mn_chunk_state to, float *work);
void mn_scalar_decay_chunk_back(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                        mn_chunk_state grad, float *work);

#endif
