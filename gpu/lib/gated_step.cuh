/* gated_step.cuh -- what linear_attention and joint_gate_attention share: a step for acting, and the keys'
** gradients with respect to their factors, which agalite uses too. */
#pragma once
#include "galite_decay.cuh"
#include "runtime/strided_copy.cuh"

/* A state C[V,K] and s[K] of each head, as the ops hold it; checkpoints [V+1,K] in rows of saved_row floats. */
struct CuGatedState {
  const float *first_C, *first_s;          /* before row 0; NULL: zeros */
  float *C, *s;                            /* running, and after the last row */
  float *saved, *y;
  int span;                                /* chunks from one checkpoint to the next */
  long saved_row;
};

/* gated_step.cu */

/* Rows t0 .. t1-1, one after the other, in place: one launch, for the few rows of acting.  joint: the decay is
** keep - beta u (joint_gate_attention), not a product. */
void cu_gated_step(const CuGatedInputs *a, const CuGatedState *s, bool joint, int t0, int t1);

/* Gradients of keys as features, of some tokens of heads head .. head+heads-1: those of q, write and decay, [3,K] a token,
** in parts that are to be added up.  Token t of head bh is row ((bh - head) * chunks + t / 16) * 16 + t % 16. */
struct CuKeyGrads {
  const float *parts;
  int n;                                   /* parts */
  long apart;                              /* floats from one part to the next */
  int head, heads, chunks;
};

/* From them, the gradients of q, k, their gate, their factors and keep_k. */
void cu_keys_fold(const CuGatedInputs *a, const CuKeyGrads *g, const mn_attention *of);

