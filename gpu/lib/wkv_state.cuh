/* wkv_state.cuh -- RWKV's matrix memories by chunk.cuh: S[K,V] per head, checkpoints every sixteen steps, no
** normaliser.  Keys: the keys' side of the op; v, done, state: indices of its inputs. */
#pragma once
#include "chunk_backward.cuh"

enum { CU_WKV_Y, CU_WKV_S, CU_WKV_SAVED };

static inline CuChunks cu_wkv_chunks(const mn_call *c, bool pair, int v, int done, int t0, int t1) {
  CuChunks p = {};
  p.K = DIM(c, 'K');
  cu_chunks_set(&p, c, pair, false, t0, t1);
  p.done = c->in[done].u8, p.v = c->in[v].data;
  p.by_col = 1, p.by_key = p.V;
  p.span = 1;
  p.saved = c->out[CU_WKV_SAVED].data, p.saved_row = c->out[CU_WKV_SAVED].shape[1];
  return p;
}

template <class Keys> static void cu_wkv_forward(mn_call *c, const Keys &keys, int v, int done, int state) {
  CuChunks p = cu_wkv_chunks(c, Keys::PAIR, v, done, c->t0, c->t1);
  p.first_C = c->t0 ? c->out[CU_WKV_S].data : c->in[state].data;
  p.last_C = c->out[CU_WKV_S].data, p.y = c->out[CU_WKV_Y].data;
  cu_chunks_scratch(&p, c->ctx, false);
  CU_SLICES(p) {
    cu_side_run(keys, p, p.scores);
    cu_chunk_forward(&p, false);
  }
}

template <class Keys, class Values>
static void cu_wkv_backward(mn_call *c, const Keys &keys, const Values &values, int v, int done, int state) {
  CuChunks p = cu_wkv_chunks(c, Keys::PAIR, v, done, 0, DIM(c, 'T'));
  const CuDivision den = { false, 0.0f, 0.0f, 1.0f };
  cu_chunks_scratch(&p, c->ctx, true);
  p.first_C = c->out[CU_WKV_S].grad, p.last_C = c->in[state].grad;
  CU_SLICES(p) {
    cu_side_run(keys, p, p.scores);
    cu_chunk_forward(&p, true);
    cu_chunk_dy(&p, &den, NULL, c->out[CU_WKV_Y].grad);
    cu_chunk_backward(&p);
    cu_side_run(values, p, p.dscores);
    cu_keys_back_run(keys, p);
    cu_chunk_values_back(&p, c->in[v].grad, NULL, NULL);
  }
}
