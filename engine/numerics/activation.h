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

/* Bias and activation of rows of y. */
static inline void mn_finish(float *y, const float *b, long rows, int O, int act) {
  for (long r = 0; r < rows; r++, y += O) {
    if (b) for (int o = 0; o < O; o++) y[o] += b[o];
    switch (act) {
    case MN_RELU:    for (int o = 0; o < O; o++) y[o] = mn_activated(y[o], MN_RELU); break;
    case MN_SIGMOID: for (int o = 0; o < O; o++) y[o] = mn_activated(y[o], MN_SIGMOID); break;
    case MN_TANH:    for (int o = 0; o < O; o++) y[o] = mn_activated(y[o], MN_TANH); break;
    case MN_ELU1:    for (int o = 0; o < O; o++) y[o] = mn_activated(y[o], MN_ELU1); break;
    }
  }
}

/* Sums of columns from .. end-1 of dz [N, width]: the gradient of a bias, stored or added. */
static inline void mn_column_sums(const float *dz, long N, long width, long from, long end, float *db, bool add) {
  if (!add) for (long o = from; o < end; o++) db[o] = 0;
  for (long r = 0; r < N; r++) for (long o = from; o < end; o++) db[o] += dz[r * width + o];
}

/* dy through the activation, from y alone. */
static inline void mn_undo(const float *y, const float *dy, float *dz, long n, int act) {
  switch (act) {
  case MN_RELU:    for (long i = 0; i < n; i++) dz[i] = mn_undone(y[i], dy[i], MN_RELU); break;
  case MN_SIGMOID: for (long i = 0; i < n; i++) dz[i] = mn_undone(y[i], dy[i], MN_SIGMOID); break;
  case MN_TANH:    for (long i = 0; i < n; i++) dz[i] = mn_undone(y[i], dy[i], MN_TANH); break;
  case MN_ELU1:    for (long i = 0; i < n; i++) dz[i] = mn_undone(y[i], dy[i], MN_ELU1); break;
  }
}

#endif
