/* head_linear.c -- a separate linear map for every head: y_h = act(x_h w_h^T + b_h).
** Head h uses rows h*R .. h*R+R-1 of w (the released GaLiTe's second query projection).  As in
** linear, the first rows of a run by rows leave the weights packed (packed_gemm.h) for the rest. */
#include "numerics/packed_gemm.h"
#include "numerics/activation.h"

static int shape(mn_call *c) {
  int H = DIM(c, 'H'), P = DIM(c, 'P');
  if (P % H) return mn_fail(c->ctx, "head_linear: axis 0 (P) of w is %d, expected a multiple of the %d heads", P, H);
  bool rows = c->in[0].timed;
  mn_arg *packed = &c->out[1];
  c->out[0].shape[3] = P / H;
  packed->shape[0] = rows ? H * mn_panels(P / H) : 1;
  packed->shape[1] = rows ? DIM(c, 'I') : 1;
  packed->shape[2] = rows ? MN_PANEL : 1;
  return 0;
}

/* The packed weights of head h. */
static float *packed_of(const mn_call *c, int h) {
  return c->out[1].data + (long)h * mn_panels(DIM(c, 'P') / DIM(c, 'H')) * MN_PANEL * DIM(c, 'I');
}

static void forward(mn_call *c) {
  int H = DIM(c, 'H'), I = DIM(c, 'I'), P = DIM(c, 'P'), R = P / H, N = (int)(c->in[0].n / (H * I)), act = (int)OPT(c, 0);
  const float *x = c->in[0].data, *w = c->in[1].data, *b = c->in[2].data;
  float *y = c->out[0].data;
  for (int h = 0; h < H; h++) {
    const float *mine = w + (long)h * R * I;
    if (mn_packs(c)) mn_pack(c->ctx, mine, I, R, true, packed_of(c, h));
    if (c->by_rows && N <= MN_PACKED_ROWS) mn_gemm_packed(c->ctx, N, R, I, x + h * I, H * I, packed_of(c, h), y + h * R, P, false);
    else mn_gemm(c->ctx, false, true, N, R, I, x + h * I, H * I, mine, I, y + h * R, P, false);
  }
  mn_finish(y, P, y, P, b, N, P, act);
}

static void backward(mn_call *c) {
  int H = DIM(c, 'H'), I = DIM(c, 'I'), P = DIM(c, 'P'), R = P / H, N = (int)(c->in[0].n / (H * I)), act = (int)OPT(c, 0);
  const float *x = c->in[0].data, *w = c->in[1].data, *y = c->out[0].data, *dy = c->out[0].grad;
  float *undone = mn_scratch(c->ctx, 0, (long)N * P), *db = c->in[2].grad;
  const float *dz;
  if (act == MN_NONE) dz = dy;
  else mn_undo(y, dy, undone, (long)N * P, act), dz = undone;
  for (int h = 0; h < H; h++) {
    long at = (long)h * R * I;
    if (c->in[0].grad) mn_gemm(c->ctx, false, false, N, I, R, dz + h * R, P, w + at, I, c->in[0].grad + h * I, H * I, false);
    if (c->in[1].grad) mn_gemm(c->ctx, true, false, R, I, N, dz + h * R, P, x + h * I, H * I, c->in[1].grad + at, I, false);
  }
  if (db) mn_column_sums(dz, N, P, 0, P, db, false);
}

const mn_op mn_op_head_linear = {
  .sig = "x[T,B,H,I] w[P,I] b?[P] -> y[T,B,H,?] ~~packed[?,?,?] | act=none|relu|sigmoid|tanh|elu1",
  .doc = "y_h = act(x_h w_h^T + b_h): a separate linear map for every head",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
