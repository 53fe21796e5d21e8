/* head_conv.c -- a convolution along a sequence with one filter for each head, centred, zeros beyond the
** ends: what Nystroemformer adds to its values (Xiong et al. 2021, section 3.3). */
#include <string.h>
#include "numerics/fast_math.h"
#include "op.h"

/* to_t += sum over j of w_j x_(t + sign (j - n/2)); sign -1 is the transpose. */
static void convolve(const mn_call *c, long bh, const float *x, float *to, int sign) {
  int N = DIM(c, 'N'), D = DIM(c, 'D'), n = DIM(c, 'J');
  const float *w = c->in[1].data + bh % DIM(c, 'H') * n;
  x += bh * N * D, to += bh * N * D;
  memset(to, 0, sizeof(float) * (size_t)N * (size_t)D);
  for (int t = 0; t < N; t++)
    for (int j = 0; j < n; j++) {
      int from = t + sign * (j - n / 2);
      if (from < 0 || from >= N) continue;
      MN_PRAGMA(omp simd)
      for (int d = 0; d < D; d++) to[(long)t * D + d] = MN_FMA(w[j], x[(long)from * D + d], to[(long)t * D + d]);
    }
}

static void forward(mn_call *c) {
  long heads = (long)DIM(c, 'B') * DIM(c, 'H');
  MN_FOR(c->ctx, (double)c->in[0].n * DIM(c, 'J'), bh, 0, heads, 1,
         convolve(c, bh, c->in[0].data, c->out[0].data, 1));
}

/* dw_j = sum over t of dy_t . x_(t + j - n/2), for one head over all environments */
static void filter_back(const mn_call *c, long h) {
  int B = DIM(c, 'B'), H = DIM(c, 'H'), N = DIM(c, 'N'), D = DIM(c, 'D'), n = DIM(c, 'J');
  for (int j = 0; j < n; j++) {
    double sum = 0;
    int shift = j - n / 2, from = shift < 0 ? -shift : 0, end = shift > 0 ? N - shift : N;
    for (long b = 0; b < B; b++) {
      long at = (b * H + h) * N * D;
      const float *x = c->in[0].data + at + (long)shift * D, *dy = c->out[0].grad + at;
      for (long i = (long)from * D; i < (long)end * D; i++) sum += dy[i] * x[i];
    }
    c->in[1].grad[h * n + j] = (float)sum;
  }
}

static void backward(mn_call *c) {
  int B = DIM(c, 'B'), H = DIM(c, 'H');
  double work = (double)c->in[0].n * DIM(c, 'J');
  if (c->in[0].grad)
    MN_FOR(c->ctx, work, bh, 0, (long)B * H, 1, convolve(c, bh, c->out[0].grad, c->in[0].grad, -1));
  if (c->in[1].grad) MN_FOR(c->ctx, work, h, 0, H, 1, filter_back(c, h));
}

const mn_op mn_op_head_conv = {
  .sig = "x[B,H,N,D] w[H,J] -> y[B,H,N,D]",
  .doc = "y_t = sum over j of w[h,j] x_(t + j - J/2), zeros beyond the ends: one filter per head (Xiong et al. 2021, section 3.3)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
