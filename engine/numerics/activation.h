/* activation.h -- the activations that `linear` applies to its output, and their gradients.
** Their order is that of the option act=none|relu|sigmoid|tanh|elu1. */
#ifndef MN_ACTIVATION_H
#define MN_ACTIVATION_H
#include "fast_math.h"
#include "op.h"

enum { MN_NONE, MN_RELU, MN_SIGMOID, MN_TANH, MN_ELU1 };

/* One number through an activation, and its gradient back from the result alone.  `act` is a constant where a
** loop is to be vectorised. */
MN_MATH float mn_activated(float x, int act) {
  switch (act) {
  case MN_RELU:    return mn_at_least(x, 0);
  case MN_SIGMOID: return mn_sigmoidf(x);
  case MN_TANH:    return mn_tanhf(x);
  case MN_ELU1:    return x > 0 ? x + 1 : mn_expf(x);
  default:         return x;
  }
}

MN_MATH float mn_undone(float y, float dy, int act) {
  switch (act) {
  case MN_RELU:    return y > 0 ? dy : 0;
  case MN_SIGMOID: return dy * y * (1 - y);
  case MN_TANH:    return dy * (1 - y * y);
  case MN_ELU1:    return y > 1 ? dy : dy * y;
  default:         return dy;
  }
}

/* Bias and activation of n columns of rows of z, which lie `from` apart, to rows of y, which may be z: in one pass. */
MN_MATH void mn_finish_as(const int act, const bool biased, const float *z, long from, float *y, long ld, const float *b, long rows, int n) {
  for (long r = 0; r < rows; r++, y += ld, z += from) {
    _Pragma("omp simd")
    for (int o = 0; o < n; o++) y[o] = mn_activated(biased ? z[o] + b[o] : z[o], act);
  }
}

static inline void mn_finish(const float *z, long from, float *y, long ld, const float *b, long rows, int n, int act) {
#define MN_FINISH(act) if (b) mn_finish_as(act, true, z, from, y, ld, b, rows, n); else mn_finish_as(act, false, z, from, y, ld, b, rows, n)
  switch (act) {
  case MN_RELU:    MN_FINISH(MN_RELU); break;
  case MN_SIGMOID: MN_FINISH(MN_SIGMOID); break;
  case MN_TANH:    MN_FINISH(MN_TANH); break;
  case MN_ELU1:    MN_FINISH(MN_ELU1); break;
  default:         if (!b && z == y) break; MN_FINISH(MN_NONE);
  }
#undef MN_FINISH
}

/* Sums of columns from .. end-1 of dz [N, width]: the gradient of a bias, stored or added.  32 columns at a time have their sums in
** registers, and so has each of the last few; sums in memory would wait for their own stores at every row. */
static inline void mn_column_sums(const float *dz, long N, long width, long from, long end, float *db, bool add) {
  enum { ACROSS = 32, FEW = 8 };
  if (!add) for (long o = from; o < end; o++) db[o] = 0;
  for (; end - from >= ACROSS; from += ACROSS) {
    float sum[ACROSS];
    memcpy(sum, db + from, sizeof sum);
    for (long r = 0; r < N; r++) {
      _Pragma("omp simd")
      for (int o = 0; o < ACROSS; o++) sum[o] += dz[r * width + from + o];
    }
    memcpy(db + from, sum, sizeof sum);
  }
  for (; end - from < FEW && from < end; from++) {
    float sum = db[from];
    for (long r = 0; r < N; r++) sum += dz[r * width + from];
    db[from] = sum;
  }
  for (long r = 0; from < end && r < N; r++) {
    _Pragma("omp simd")
    for (long o = from; o < end; o++) db[o] += dz[r * width + o];
  }
}

/* dy through the activation, from y alone. */
static inline void mn_undo(const float *y, const float *dy, float *dz, long n, int act) {
#define MN_UNDO(act) _Pragma("omp simd") for (long i = 0; i < n; i++) dz[i] = mn_undone(y[i], dy[i], act)
  switch (act) {
  case MN_RELU:    MN_UNDO(MN_RELU); break;
  case MN_SIGMOID: MN_UNDO(MN_SIGMOID); break;
  case MN_TANH:    MN_UNDO(MN_TANH); break;
  case MN_ELU1:    MN_UNDO(MN_ELU1); break;
  }
#undef MN_UNDO
}

#endif
