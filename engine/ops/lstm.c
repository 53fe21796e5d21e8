/* lstm.c -- an LSTM over a sequence (Hochreiter and Schmidhuber 1997; with a forget gate, Gers et al. 2000):
**   c' = sigma(f) c + sigma(i) tanh(g)     h' = sigma(o) tanh(c')
** where i, f, g, o = x's part + w h.  x's part of all four, biases included, is one product for the whole
** sequence, by `linear`.  A done flag drops h and c before the step. */
#include "numerics/fast_math.h"
#include "numerics/recurrent_cells.h"

enum { IN_I, IN_W, IN_DONE, IN_H, IN_C };
enum { OUT_Y, OUT_H, OUT_C, OUT_SAVE, OUT_PACKED };
enum { SAVED = 5 };                 /* i, f, g, o after their activations, and c: D each */

/* z: the recurrent part of the gates; save: one row; c: in the cell before.  In several loops, as in gru.c. */
static void step(const float *x, const float *z, const float *c, float *save, float *h, int D) {
  float *i = save, *f = save + D, *g = save + 2 * D, *o = save + 3 * D, *cell = save + 4 * D;
  MN_PRAGMA(omp simd)
  for (int d = 0; d < 2 * D; d++) save[d] = mn_sigmoidf(x[d] + z[d]);
  MN_PRAGMA(omp simd)
  for (int d = 0; d < D; d++) {
    g[d] = mn_tanhf(x[2 * D + d] + z[2 * D + d]);
    o[d] = mn_sigmoidf(x[3 * D + d] + z[3 * D + d]);
    cell[d] = f[d] * c[d] + i[d] * g[d];
  }
  MN_PRAGMA(omp simd)
  for (int d = 0; d < D; d++) h[d] = o[d] * mn_tanhf(cell[d]);
}

static int shape(mn_call *c) {
  int D = DIM(c, 'D'), G = DIM(c, 'G');
  if (G != 4 * D) return mn_fail(c->ctx, "lstm: axis 2 (G) of i is %d, expected 4 x %d as in w", G, D);
  c->out[OUT_SAVE].shape[2] = SAVED * D;
  c->out[OUT_PACKED].shape[0] = mn_panels(G);
  c->out[OUT_PACKED].shape[1] = D;
  c->out[OUT_PACKED].shape[2] = MN_PANEL;
  return 0;
}

/* h and the cell that row t starts from. */
static void carried(const mn_call *c, int t, float *h, float *cell) {
  int B = DIM(c, 'B'), D = DIM(c, 'D');
  const uint8_t *done = c->in[IN_DONE].u8;
  mn_carried(c->out[OUT_Y].data, D, c->in[IN_H].data, done, t, B, D, h);
  mn_carried(c->out[OUT_SAVE].data + 4 * D, SAVED * D, c->in[IN_C].data, done, t, B, D, cell);
}

/* Row t of all environments; z: the recurrent part of their gates; cell: what they start from. */
typedef struct row_job { const mn_call *c; int t; const float *z, *cell; float *dh, *dc, *di; } row_job;

static void step_row(void *arg, int b, int worker) {
  (void)worker;
  const row_job *j = arg;
  const mn_call *c = j->c;
  long D = DIM(c, 'D'), row = (long)j->t * DIM(c, 'B') + b;
  step(c->in[IN_I].data + row * 4 * D, j->z + b * 4 * D, j->cell + b * D, c->out[OUT_SAVE].data + row * SAVED * D,
       c->out[OUT_Y].data + row * D, (int)D);
}

static void forward(mn_call *c) {
  int B = DIM(c, 'B'), D = DIM(c, 'D'), G = 4 * D;
  float *y = c->out[OUT_Y].data, *save = c->out[OUT_SAVE].data, *packed = c->out[OUT_PACKED].data;
  float *z = mn_scratch(c->ctx, 0, (long)B * G), *h = mn_scratch(c->ctx, 1, 2L * B * D), *cell = h + (long)B * D;
  if (c->t0 == 0) mn_pack(c->ctx, c->in[IN_W].data, D, G, true, packed);
  for (int t = c->t0; t < c->t1; t++) {
    carried(c, t, h, cell);
    mn_product(c->ctx, B, G, D, h, packed, z, G, false);
    mn_each_row(c->ctx, B, D, step_row, &(row_job){ .c = c, .t = t, .z = z, .cell = cell });
  }
  for (long b = 0; b < B; b++) {
    long row = (long)(c->t1 - 1) * B + b;
    for (int d = 0; d < D; d++) {
      c->out[OUT_H].data[b * D + d] = y[row * D + d];
      c->out[OUT_C].data[b * D + d] = save[row * SAVED * D + 4 * D + d];
    }
  }
}

/* One row: from dh and dc to the gradient of the gates, and of the cell before in dc. */
static void undo(const float *save, const float *before, const float *dh, float *dc, float *di, int D) {
  const float *i = save, *f = save + D, *g = save + 2 * D, *o = save + 3 * D, *cell = save + 4 * D;
  MN_PRAGMA(omp simd)
  for (int d = 0; d < D; d++) {
    float t = mn_tanhf(cell[d]), dcell = dc[d] + dh[d] * o[d] * (1 - t * t);
    di[d] = dcell * g[d] * i[d] * (1 - i[d]);
    di[D + d] = dcell * before[d] * f[d] * (1 - f[d]);
    di[2 * D + d] = dcell * i[d] * (1 - g[d] * g[d]);
    di[3 * D + d] = dh[d] * t * o[d] * (1 - o[d]);
    dc[d] = dcell * f[d];
  }
}

static void undo_row(void *arg, int b, int worker) {
  (void)worker;
  const row_job *j = arg;
  const mn_call *c = j->c;
  long D = DIM(c, 'D'), row = (long)j->t * DIM(c, 'B') + b;
  const float *dy = c->out[OUT_Y].grad;
  float *dh = j->dh + b * D;
  if (dy) {
    MN_PRAGMA(omp simd)
    for (long d = 0; d < D; d++) dh[d] += dy[row * D + d];
  }
  undo(c->out[OUT_SAVE].data + row * SAVED * D, j->cell + b * D, dh, j->dc + b * D, j->di + row * 4 * D, (int)D);
}

static void drop(const uint8_t *done, float *dh, float *dc, int B, int D) {
  for (long b = 0; done && b < B; b++)
    if (done[b]) for (long d = b * D; d < (b + 1) * D; d++) dh[d] = dc[d] = 0;
}

static void backward(mn_call *c) {
  int T = DIM(c, 'T'), B = DIM(c, 'B'), D = DIM(c, 'D'), G = 4 * D;
  long BD = (long)B * D, N = (long)T * B;
  mn_ctx *mn = c->ctx;
  const float *dlast = c->out[OUT_H].grad, *dclast = c->out[OUT_C].grad;
  const uint8_t *done = c->in[IN_DONE].u8;
  float *before = mn_scratch(mn, 0, N * D), *cell = mn_scratch(mn, 1, 3 * BD), *dh = cell + BD, *dc = dh + BD;
  float *packed = mn_scratch(mn, 2, (long)mn_panels(D) * MN_PANEL * G);
  float *di = c->in[IN_I].grad ? c->in[IN_I].grad : mn_scratch(mn, 3, N * G);
  float *dw = c->in[IN_W].grad, *dh0 = c->in[IN_H].grad, *dc0 = c->in[IN_C].grad;
  mn_pack(mn, c->in[IN_W].data, G, D, false, packed);
  for (long k = 0; k < BD; k++) dh[k] = dlast ? dlast[k] : 0, dc[k] = dclast ? dclast[k] : 0;
  for (int t = T - 1; t >= 0; t--) {
    carried(c, t, before + t * BD, cell);
    mn_each_row(mn, B, D, undo_row, &(row_job){ .c = c, .t = t, .cell = cell, .dh = dh, .dc = dc, .di = di });
    mn_product(mn, B, D, G, di + (long)t * B * G, packed, dh, D, false);
    drop(done ? done + (long)t * B : NULL, dh, dc, B, D);
  }
  for (long k = 0; dh0 && k < BD; k++) dh0[k] = dh[k];
  for (long k = 0; dc0 && k < BD; k++) dc0[k] = dc[k];
  if (dw) mn_gemm(mn, true, false, G, D, (int)N, di, G, before, D, dw, D, false);
}

const mn_op mn_op_lstm = {
  .sig = "i[T,B,G] w[G,D] done?[T,B]:bit h?[B,D] c?[B,D] -> y[T,B,D] h'[B,D] c'[B,D] ~~save[T,B,?] ~~packed[?,?,?]",
  .doc = "LSTM over a sequence (Hochreiter and Schmidhuber 1997). i = the input's part of i, f, g, o with their biases; w = w_i, w_f, w_g, w_o",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
