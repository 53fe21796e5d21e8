/* activation.h -- the activations that a linear map applies to its own output, and back.
** Their order is that of the option act=none|relu|sigmoid|tanh|elu1. */
#ifndef MN_ACTIVATION_H
#define MN_ACTIVATION_H
#include "../maths.h"
#include "op.h"

enum { MN_NONE, MN_RELU, MN_SIGMOID, MN_TANH, MN_ELU1 };

/* Bias and activation of rows of y. */
static inline void mn_finish(float *y, const float *b, long rows, int O, int act) {
  for (long r = 0; r < rows; r++, y += O) {
    if (b) for (int o = 0; o < O; o++) y[o] += b[o];
    switch (act) {
    case MN_RELU:    for (int o = 0; o < O; o++) y[o] = mn_at_least(y[o], 0); break;
    case MN_SIGMOID: for (int o = 0; o < O; o++) y[o] = mn_sigmoidf(y[o]); break;
    case MN_TANH:    for (int o = 0; o < O; o++) y[o] = mn_tanhf(y[o]); break;
    case MN_ELU1:    for (int o = 0; o < O; o++) y[o] = y[o] > 0 ? y[o] + 1 : mn_expf(y[o]); break;
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
  case MN_RELU:    for (long i = 0; i < n; i++) dz[i] = y[i] > 0 ? dy[i] : 0; break;
  case MN_SIGMOID: for (long i = 0; i < n; i++) dz[i] = dy[i] * y[i] * (1 - y[i]); break;
  case MN_TANH:    for (long i = 0; i < n; i++) dz[i] = dy[i] * (1 - y[i] * y[i]); break;
  case MN_ELU1:    for (long i = 0; i < n; i++) dz[i] = y[i] > 1 ? dy[i] : dy[i] * y[i]; break;
  }
}

#endif
