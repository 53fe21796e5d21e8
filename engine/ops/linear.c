/* linear.c -- y = act(x w^T + b): a matrix product with its bias and activation in one pass.
** Acting asks for a few rows at a time, again and again with the same weights: the first rows of a run
** leave the weights packed (few.h) for the rest. */
#include "../few.h"
#include "../team.h"
#include "activation.h"

static int shape(mn_call *c) {   /* packed weights are kept only where rows will come */
  bool rows = c->in[0].timed;
  mn_arg *packed = &c->out[1];
  packed->shape[0] = rows ? mn_panels(DIM(c, 'O')) : 1;
  packed->shape[1] = rows ? DIM(c, 'I') : 1;
  packed->shape[2] = rows ? MN_PANEL : 1;
  return 0;
}

/* Product, bias and activation of 64 columns. */
typedef struct columns_job { const mn_call *c; const float *packed; } columns_job;

static void some_columns(void *arg, int i, int worker) {
  (void)worker;
  const columns_job *j = arg;
  const mn_call *c = j->c;
  int I = DIM(c, 'I'), O = DIM(c, 'O'), at = 2 * MN_PANEL * i, n = O - at < 2 * MN_PANEL ? O - at : 2 * MN_PANEL;
  long N = c->in[0].n / I;
  const float *b = c->in[2].data;
  float *y = c->out[0].data + at;
  mn_few_columns((int)N, O - at, I, c->in[0].data, I, j->packed + (long)at * I, y, O, false);
  for (long r = 0; r < N; r++) mn_finish(y + r * O, b ? b + at : NULL, 1, n, (int)OPT(c, 0));
}

static void forward(mn_call *c) {
  int I = DIM(c, 'I'), O = DIM(c, 'O'), act = (int)OPT(c, 0);
  long N = c->in[0].n / I;
  const float *x = c->in[0].data, *w = c->in[1].data, *b = c->in[2].data;
  float *y = c->out[0].data, *packed = c->out[1].data;
  if (c->by_rows && N <= MN_FEW) {
    if (c->t0 == 0) mn_pack(w, I, O, true, packed);
    columns_job job = { c, packed };
    int n = (O + 2 * MN_PANEL - 1) / (2 * MN_PANEL);
    if ((double)N * O * I < MN_SMALL) for (int i = 0; i < n; i++) some_columns(&job, i, 0);
    else mn_team_run(c->ctx, n, some_columns, &job);
    return;
  } else mn_gemm(c->ctx, false, true, (int)N, O, I, x, I, w, I, y, O, false);
  if (!b && act == MN_NONE) return;
  MN_FOR(c->ctx, N * O, r, 0, N, 64, mn_finish(y + r * O, b, N - r < 64 ? N - r : 64, O, act));
}

static void backward(mn_call *c) {
  int I = DIM(c, 'I'), O = DIM(c, 'O'), act = (int)OPT(c, 0);
  long N = c->in[0].n / I;
  const float *x = c->in[0].data, *w = c->in[1].data, *y = c->out[0].data, *dz = c->out[0].grad;
  float *dx = c->in[0].grad, *dw = c->in[1].grad, *db = c->in[2].grad;
  if (act != MN_NONE) {
    float *z = mn_scratch(c->ctx, 0, N * O);
    MN_PARALLEL(c->ctx, N * O)
    for (long r = 0; r < N; r += 64) mn_undo(y + r * O, dz + r * O, z + r * O, (N - r < 64 ? N - r : 64) * O, act);
    dz = z;
  }
  if (dx) mn_gemm(c->ctx, false, false, (int)N, I, O, dz, O, w, I, dx, I, mn_adds(c, 0));
  if (dw) mn_gemm(c->ctx, true, false, O, I, (int)N, dz, O, x, I, dw, I, mn_adds(c, 1));
  if (db) MN_FOR(c->ctx, N * O, o, 0, O, 64, mn_column_sums(dz, N, O, o, O - o < 64 ? O : o + 64, db, mn_adds(c, 2)));
}

const mn_op mn_op_linear = {
  .sig = "x[...,I] w[O,I] b?[O] -> y[...,O] ~packed[?,?,?] | act=none|relu|sigmoid|tanh|elu1",
  .doc = "y = act(x w^T + b); torch.nn.Linear with its activation",
  .time = MN_ROWS, .adds = true,
  .shape = shape, .forward = forward, .backward = backward,
};
