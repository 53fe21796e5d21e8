/* carry_sensitivity.c -- carries the sensitivities of a state over a window of time: how each of its elements depends, through all steps
** before, on the row of parameters that is its own.  The state's Jacobian is diagonal (or of blocks of two), so they obey the state's own
** recursion; over a window it is a matrix product.  Used for credit=exact: see learn/exact_credit.lua. */
#include <string.h>
#include "op.h"

enum { BLOCK = 64 };             /* elements */
enum { IN_S, IN_KEEP, IN_G, IN_X, IN_OTHER, IN_ACROSS, IN_INTO };

static int shape(mn_call *c) {
  const int R = DIM(c, 'R'), D = c->in[IN_X].data ? c->in[IN_X].shape[2] : 0;
  if (!c->in[IN_OTHER].data != !c->in[IN_ACROSS].data) return mn_fail(c->ctx, "carry_sensitivity: other and across go together");
  if (R != D && R != D + 1)
    return mn_fail(c->ctx, "carry_sensitivity: S has rows of %d, expected %d, or %d with a bias", R, D, D + 1);
  return 0;
}

/* One environment: into = keep S + across other + g^T [x, 1]. */
static void carry(mn_call *c, long b) {
  const int T = DIM(c, 'T'), B = DIM(c, 'B'), N = DIM(c, 'N'), R = DIM(c, 'R');
  const mn_arg *x = &c->in[IN_X];
  const int D = x->data ? x->shape[2] : 0;
  const long at = b * N * R;
  const float *S = c->in[IN_S].data + at, *keep = c->in[IN_KEEP].data + b * N, *g = c->in[IN_G].data + b * N;
  const float *other = c->in[IN_OTHER].data, *across = c->in[IN_ACROSS].data;
  float *into = c->in[IN_INTO].data + at;
  for (int i = 0; i < N; i++) {
    const float k = keep[i], a = other ? across[b * N + i] : 0;
    const float *from = S + (long)i * R, *beside = other ? other + at + (long)i * R : NULL;
    float *to = into + (long)i * R;
    if (k == 0) memset(to, 0, sizeof(float) * (size_t)R);           /* an episode began: whatever was there, it is over */
    else MN_PRAGMA(omp simd) for (int j = 0; j < R; j++) to[j] = k * from[j];
    if (a != 0) MN_PRAGMA(omp simd) for (int j = 0; j < R; j++) to[j] += a * beside[j];
  }
  if (D) mn_gemm_one(true, false, N, D, T, g, B * N, x->data + b * D, B * D, into, R, true);
  for (int from = 0; R > D && from < N; from += BLOCK) {
    const int n = N - from < BLOCK ? N - from : BLOCK;
    float sum[BLOCK] = { 0 };
    for (int t = 0; t < T; t++) MN_PRAGMA(omp simd) for (int i = 0; i < n; i++) sum[i] += g[(long)t * B * N + from + i];
    for (int i = 0; i < n; i++) into[(long)(from + i) * R + D] += sum[i];
  }
}

static void forward(mn_call *c) {
  MN_FOR(c->ctx, (double)c->in[IN_G].n * DIM(c, 'R'), b, 0, DIM(c, 'B'), 1, carry(c, b));
}

const mn_op mn_op_carry_sensitivity = {
  .sig = "S[B,N,R] keep[B,N] g[T,B,N] x?[T,B,D] other?[B,N,R] across?[B,N] into[B,N,R] ->",
  .doc = "into = keep S + across other + sum_t g_t [x_t, 1], in place: sensitivities of a state's elements (Williams and Zipser 1989; for diagonal "
         "recurrences Zucchet et al. 2023), carried over T steps; into may be S where there is no other",
  .time = MN_WHOLE, .off_tape = true, .writes = 1 << IN_INTO, .shape = shape, .forward = forward,
};
