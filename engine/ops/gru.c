/* gru.c -- a GRU over a sequence, with the recurrent bias where torch has it:
**   r = sigma(i_r + w_r h)   z = sigma(i_z + w_z h)   n = tanh(i_n + r*(w_n h + bias))   h' = (1-z)*n + z*h
** `i` holds the input's part of the three gates (one product for the whole sequence, by `linear`).
** A done flag drops h before the step.  Cho et al. 2014; spec of the gates: torch.nn.GRU. */
#include "numerics/activation.h"
#include "numerics/recurrent_cells.h"

/* save: r, z, n and w_n h + bias of one row, D each.  In two loops: a round of all three gates is so long a chain that a processor
** would wait for it with few others in flight. */
static void step(const float *i, const float *pre, const float *bias, const float *h, float *save, float *out, int D) {
  float *r = save, *z = save + D, *n = save + 2 * D, *q = save + 3 * D;
  MN_PRAGMA(omp simd)
  for (int d = 0; d < 2 * D; d++) save[d] = mn_sigmoidf(i[d] + pre[d]);
  MN_PRAGMA(omp simd)
  for (int d = 0; d < D; d++) {
    q[d] = pre[2 * D + d] + bias[d];
    n[d] = mn_tanhf(i[2 * D + d] + r[d] * q[d]);
    out[d] = (1 - z[d]) * n[d] + z[d] * h[d];
  }
}

static int shape(mn_call *c) {
  int D = DIM(c, 'D'), G = DIM(c, 'G');
  if (G != 3 * D) return mn_fail(c->ctx, "gru: axis 2 (G) of i is %d, expected 3 x %d as in w", G, D);
  c->out[2].shape[2] = 4 * D;
  c->out[3].shape[0] = mn_panels(G);
  c->out[3].shape[1] = D;
  c->out[3].shape[2] = MN_PANEL;
  return 0;
}

/* h that row t starts from. */
static void carried(const mn_call *c, int t, float *h) {
  mn_carried(c->out[0].data, DIM(c, 'D'), c->in[4].data, c->in[3].u8, t, DIM(c, 'B'), DIM(c, 'D'), h);
}

/* Row t of all environments. */
typedef struct row_job { const mn_call *c; int t; const float *pre, *h; float *dh, *di, *dpre; } row_job;

static void step_row(void *arg, int b, int worker) {
  (void)worker;
  const row_job *j = arg;
  const mn_call *c = j->c;
  long D = DIM(c, 'D'), row = (long)j->t * DIM(c, 'B') + b;
  step(c->in[0].data + row * 3 * D, j->pre + b * 3 * D, c->in[2].data, j->h + b * D, c->out[2].data + row * 4 * D,
       c->out[0].data + row * D, (int)D);
}

static void forward(mn_call *c) {
  int B = DIM(c, 'B'), D = DIM(c, 'D'), G = 3 * D;
  float *y = c->out[0].data, *last = c->out[1].data, *packed = c->out[3].data;
  float *pre = mn_scratch(c->ctx, 0, (long)B * G), *h = mn_scratch(c->ctx, 1, (long)B * D);
  if (c->t0 == 0) mn_pack(c->ctx, c->in[1].data, D, G, true, packed);
  for (int t = c->t0; t < c->t1; t++) {
    carried(c, t, h);
    mn_product(c->ctx, B, G, D, h, packed, pre, G, false);
    mn_each_row(c->ctx, B, D, step_row, &(row_job){ .c = c, .t = t, .pre = pre, .h = h });
  }
  for (long k = 0; k < (long)B * D; k++) last[k] = y[(long)(c->t1 - 1) * B * D + k];
}

/* One row: from dh to the gradients of i, of the recurrent product, and the direct part of dh before. */
static void undo(const float *save, const float *h, float *dh, float *di, float *dpre, int D) {
  const float *r = save, *z = save + D, *n = save + 2 * D, *q = save + 3 * D;
  MN_PRAGMA(omp simd)
  for (int d = 0; d < D; d++) {
    float dn = dh[d] * (1 - z[d]) * (1 - n[d] * n[d]);
    di[d] = dpre[d] = dn * q[d] * r[d] * (1 - r[d]);
    di[D + d] = dpre[D + d] = dh[d] * (h[d] - n[d]) * z[d] * (1 - z[d]);
    di[2 * D + d] = dn;
    dpre[2 * D + d] = dn * r[d];
    dh[d] *= z[d];
  }
}

static void undo_row(void *arg, int b, int worker) {
  (void)worker;
  const row_job *j = arg;
  const mn_call *c = j->c;
  long D = DIM(c, 'D'), row = (long)j->t * DIM(c, 'B') + b;
  const float *dy = c->out[0].grad;
  float *dh = j->dh + b * D;
  if (dy) {
    MN_PRAGMA(omp simd)
    for (long d = 0; d < D; d++) dh[d] += dy[row * D + d];
  }
  undo(c->out[2].data + row * 4 * D, j->h + b * D, dh, j->di + row * 3 * D, j->dpre + row * 3 * D, (int)D);
}

static void backward(mn_call *c) {
  int T = DIM(c, 'T'), B = DIM(c, 'B'), D = DIM(c, 'D'), G = 3 * D;
  long BD = (long)B * D, N = (long)T * B;
  mn_ctx *mn = c->ctx;
  const float *w = c->in[1].data, *dlast = c->out[1].grad;
  const uint8_t *done = c->in[3].u8;
  float *dpre = mn_scratch(mn, 0, N * G), *before = mn_scratch(mn, 1, N * D), *dh = mn_scratch(mn, 2, BD);
  float *dw = c->in[1].grad, *db = c->in[2].grad, *dh0 = c->in[4].grad;
  float *packed = mn_scratch(mn, 3, (long)mn_panels(D) * MN_PANEL * G + N * G);
  float *di = c->in[0].grad ? c->in[0].grad : packed + (long)mn_panels(D) * MN_PANEL * G;
  mn_pack(mn, w, G, D, false, packed);
  for (long k = 0; k < BD; k++) dh[k] = dlast ? dlast[k] : 0;
  for (int t = T - 1; t >= 0; t--) {
    float *h = before + t * BD;
    carried(c, t, h);
    mn_each_row(mn, B, D, undo_row, &(row_job){ .c = c, .t = t, .h = h, .dh = dh, .di = di, .dpre = dpre });
    mn_product(mn, B, D, G, dpre + (long)t * B * G, packed, dh, D, true);
    for (int b = 0; done && b < B; b++)
      if (done[t * B + b]) for (int d = 0; d < D; d++) dh[(long)b * D + d] = 0;
  }
  if (dh0) for (long k = 0; k < BD; k++) dh0[k] = dh[k];
  if (dw) mn_gemm(mn, true, false, G, D, (int)N, dpre, G, before, D, dw, D, false);
  if (db) MN_FOR(mn, N * D, d, 0, D, 64, mn_column_sums(dpre + 2 * D, N, G, d, D - d < 64 ? D : d + 64, db, false));
}

const mn_op mn_op_gru = {
  .sig = "i[T,B,G] w[G,D] bias[D] done?[T,B]:bit h?[B,D] -> y[T,B,D] h'[B,D] ~~save[T,B,?] ~~packed[?,?,?]",
  .doc = "GRU over a sequence (Cho et al. 2014). i = the input's part of r, z, n; w = w_r, w_z, w_n",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
