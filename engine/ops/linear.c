/* linear.c -- y = act(x w^T + b): a matrix product with its bias and activation in one pass.
** Acting asks for a few rows at a time, again and again with the same weights: the first rows of a run
** leave the weights packed (few.h) for the rest. */
#include "../few.h"
#include "../maths.h"
#include "op.h"

enum { NONE, RELU, SIGMOID, TANH, ELU1 };

/* Bias and activation of rows of y. */
static void finish(float *y, const float *b, long rows, int O, int act) {
  for (long r = 0; r < rows; r++, y += O) {
    if (b) for (int o = 0; o < O; o++) y[o] += b[o];
    switch (act) {
    case RELU:    for (int o = 0; o < O; o++) y[o] = mn_at_least(y[o], 0); break;
    case SIGMOID: for (int o = 0; o < O; o++) y[o] = mn_sigmoidf(y[o]); break;
    case TANH:    for (int o = 0; o < O; o++) y[o] = mn_tanhf(y[o]); break;
    case ELU1:    for (int o = 0; o < O; o++) y[o] = y[o] > 0 ? y[o] + 1 : mn_expf(y[o]); break;
    }
  }
}

static int shape(mn_call *c) {   /* packed weights are kept only where rows will come */
  bool rows = c->in[0].timed;
  mn_arg *packed = &c->out[1];
  packed->shape[0] = rows ? mn_panels(DIM(c, 'O')) : 1;
  packed->shape[1] = rows ? DIM(c, 'I') : 1;
  packed->shape[2] = rows ? MN_PANEL : 1;
  return 0;
}

static void forward(mn_call *c) {
  int I = DIM(c, 'I'), O = DIM(c, 'O'), act = (int)OPT(c, 0);
  long N = c->in[0].n / I;
  const float *x = c->in[0].data, *w = c->in[1].data, *b = c->in[2].data;
  float *y = c->out[0].data, *packed = c->out[1].data;
  if (c->by_rows && N <= MN_FEW) {
    if (c->t0 == 0) mn_pack(w, I, O, true, packed);
    mn_few(c->ctx, (int)N, O, I, x, I, packed, y, O, false);
  } else mn_gemm(c->ctx, false, true, (int)N, O, I, x, I, w, I, y, O, false);
  if (!b && act == NONE) return;
  MN_PARALLEL(c->ctx, N * O)
  for (long r = 0; r < N; r += 64) finish(y + r * O, b, N - r < 64 ? N - r : 64, O, act);
}

/* dy through the activation, from y alone. */
static void undo(const float *y, const float *dy, float *dz, long n, int act) {
  switch (act) {
  case RELU:    for (long i = 0; i < n; i++) dz[i] = y[i] > 0 ? dy[i] : 0; break;
  case SIGMOID: for (long i = 0; i < n; i++) dz[i] = dy[i] * y[i] * (1 - y[i]); break;
  case TANH:    for (long i = 0; i < n; i++) dz[i] = dy[i] * (1 - y[i] * y[i]); break;
  case ELU1:    for (long i = 0; i < n; i++) dz[i] = y[i] > 1 ? dy[i] : dy[i] * y[i]; break;
  }
}

static void backward(mn_call *c) {
  int I = DIM(c, 'I'), O = DIM(c, 'O'), act = (int)OPT(c, 0);
  long N = c->in[0].n / I;
  const float *x = c->in[0].data, *w = c->in[1].data, *y = c->out[0].data, *dz = c->out[0].grad;
  float *dx = c->in[0].grad, *dw = c->in[1].grad, *db = c->in[2].grad;
  if (act != NONE) {
    float *z = mn_scratch(c->ctx, 0, N * O);
    MN_PARALLEL(c->ctx, N * O)
    for (long r = 0; r < N; r += 64) undo(y + r * O, dz + r * O, z + r * O, (N - r < 64 ? N - r : 64) * O, act);
    dz = z;
  }
  if (dx) mn_gemm(c->ctx, false, false, (int)N, I, O, dz, O, w, I, dx, I, mn_adds(c, 0));
  if (dw) mn_gemm(c->ctx, true, false, O, I, (int)N, dz, O, x, I, dw, I, mn_adds(c, 1));
  if (db) {
    if (!mn_adds(c, 2)) for (int o = 0; o < O; o++) db[o] = 0;
    for (long r = 0; r < N; r++) for (int o = 0; o < O; o++) db[o] += dz[r * O + o];
  }
}

const mn_op mn_op_linear = {
  .sig = "x[...,I] w[O,I] b?[O] -> y[...,O] ~packed[?,?,?] | act=none|relu|sigmoid|tanh|elu1",
  .doc = "y = act(x w^T + b); torch.nn.Linear with its activation",
  .time = MN_ROWS, .by_copies = true, .adds = true,
  .shape = shape, .forward = forward, .backward = backward,
};
