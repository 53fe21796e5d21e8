/* sensitivity.cu -- carry_sensitivity with_past: the sensitivities of a state, carried over a window, and what the gradient of the state gives
** through them.  Sums are taken in one order. */
#include "runtime/strided_copy.cuh"

enum { IN_S, IN_KEEP, IN_G, IN_X, IN_OTHER, IN_ACROSS, IN_INTO };
enum { IN_STATE, IN_PAST, IN_W, IN_BIAS, IN_ROWS };

namespace {
struct Carry {                   /* S[B,N,R]; D = R, or R - 1 where a bias is last */
  const float *S, *keep, *g, *x, *other, *across;
  float *into;
  long T, B, N, R, D;
};
struct Past {                    /* elements from .. from + N - 1 of all of an environment's state */
  const float *dy, *S;
  const int32_t *rows;
  float *dw, *db;
  long B, N, R, D, O, all, from;
};
}

/* A thread for each sensitivity, so that `into` may be S. */
CU_KERNEL carry(const Carry &m, cu_divisor R, cu_divisor N) {
  CU_LOOP(at, m.B * m.N * m.R) {
    long j, i;
    const long row = R.divide(at, &j), b = N.divide(row, &i);
    const float keep = m.keep[row], across = m.other ? m.across[row] : 0.0f;
    float sum = keep == 0 ? 0.0f : keep * m.S[at];               /* an episode began: whatever was there, it is over */
    if (across != 0) sum += across * m.other[at];
    const float *g = m.g + row, *x = m.x + b * m.D + j;
    for (long t = 0; t < m.T; t++) sum += g[t * m.B * m.N] * (j < m.D ? x[t * m.B * m.D] : 1.0f);
    m.into[at] = sum;
  }
}

static void carry_forward(mn_call *c) {
  const mn_arg *x = &c->in[IN_X];
  Carry m = {};
  m.S = c->in[IN_S].data, m.keep = c->in[IN_KEEP].data, m.g = c->in[IN_G].data, m.x = x->data;
  m.other = c->in[IN_OTHER].data, m.across = c->in[IN_ACROSS].data, m.into = c->in[IN_INTO].data;
  m.T = DIM(c, 'T'), m.B = DIM(c, 'B'), m.N = DIM(c, 'N'), m.R = DIM(c, 'R'), m.D = x->data ? x->shape[2] : 0;
  CU_LAUNCH(carry, cu_blocks(m.B * m.N * m.R), CU_THREADS, 0, m, cu_divisor(m.R), cu_divisor(m.N));
}

/* A thread for each parameter of [w, bias], which looks for the elements that its row feeds. */
CU_KERNEL give(const Past &m, cu_divisor R) {
  CU_LOOP(at, m.O * m.R) {
    long j;
    const long o = R.divide(at, &j);
    float *to = j < m.D ? m.dw ? m.dw + o * m.D + j : nullptr : m.db ? m.db + o : nullptr;
    if (!to) continue;
    float sum = 0;
    for (long i = 0; i < m.N; i++) {
      if (m.rows[i] != o) continue;
      for (long b = 0; b < m.B; b++) {
        const float dy = m.dy[b * m.all + m.from + i];
        if (dy != 0) sum += dy * m.S[(b * m.N + i) * m.R + j];
      }
    }
    *to = sum;
  }
}

static void past_forward(mn_call *c) { cu_copy(c->out[0].data, c->in[IN_STATE].data, c->in[IN_STATE].n); }

static void past_backward(mn_call *c) {
  const mn_arg *state = &c->in[IN_STATE], *w = &c->in[IN_W], *bias = &c->in[IN_BIAS];
  Past m = {};
  m.dy = c->out[0].grad, m.S = c->in[IN_PAST].data, m.rows = c->in[IN_ROWS].i32, m.dw = w->grad, m.db = bias->grad;
  m.B = DIM(c, 'B'), m.N = DIM(c, 'N'), m.R = DIM(c, 'R'), m.D = w->data ? w->shape[1] : 0;
  m.O = w->data ? w->shape[0] : bias->data ? bias->shape[0] : 0, m.all = state->n / m.B, m.from = (long)OPT(c, 0);
  if (state->grad) cu_copy(state->grad, m.dy, state->n);
  if (m.dw || m.db) CU_LAUNCH(give, cu_blocks(m.O * m.R), CU_THREADS, 0, m, cu_divisor(m.R));
}

MN_KERNEL(carry_sensitivity, carry_forward, NULL)
MN_KERNEL(with_past, past_forward, past_backward)
