/* gru_gate.c -- the gate of GTrXL in place of a residual sum (Parisotto et al. 2020, section 3.2):
**   r = sigma(w_r y + u_r x)   z = sigma(w_z y + u_z x - bias)   g = tanh(w_g y + u_g (r*x))
**   o = (1-z)*x + z*g
** One product for the three w, one for u_r and u_z, one for u_g.  `pre` holds r, z, g side by side for
** backward; `rx` holds r*x. */
#include "numerics/packed_gemm.h"
#include "numerics/gates.h"

static int shape(mn_call *c) {
  int D = DIM(c, 'D');
  mn_arg *pre = &c->out[1];
  *pre = c->out[0];
  pre->dtype = MN_F32;
  pre->shape[pre->ndim - 1] = 3 * D;
  mn_arg *packed = &c->out[3];
  bool rows = c->in[0].timed;
  packed->shape[0] = rows ? mn_panels(3 * D) + mn_panels(2 * D) + mn_panels(D) : 1;
  packed->shape[1] = rows ? D : 1;
  packed->shape[2] = rows ? MN_PANEL : 1;
  return 0;
}

/* The three products: pre = y w^T, + x u_rz^T on its first two thirds, and later + (r*x) u_g^T on the last. */
typedef struct parts { const float *w, *u, *ug; float *pw, *pu, *pg; bool few; } parts;

static bool few_rows(const mn_call *c) {
  int D = DIM(c, 'D');
  return c->by_rows && c->in[0].n <= (long)MN_PACKED_ROWS * D && D % MN_PANEL == 0;      /* gates begin at panels */
}

static parts weights(mn_call *c) {
  int D = DIM(c, 'D');
  long panel = (long)D * MN_PANEL;
  float *packed = c->out[3].data;
  parts p = { c->in[2].data, c->in[3].data, c->in[3].data + 2L * D * D, packed, packed + mn_panels(3 * D) * panel,
              packed + (mn_panels(3 * D) + mn_panels(2 * D)) * panel, few_rows(c) };
  if (mn_packs(c)) {
    mn_pack(c->ctx, p.w, D, 3 * D, true, p.pw);
    mn_pack(c->ctx, p.u, D, 2 * D, true, p.pu);
    mn_pack(c->ctx, p.ug, D, D, true, p.pg);
  }
  return p;
}

/* Acting: each piece takes the same 64 columns of all three gates through products and elementwise part. */
typedef struct columns_job { const mn_call *c; const parts *p; const mn_few *x, *y; } columns_job;

static void first_part(void *arg, int i, int worker) {
  const columns_job *j = arg;
  const mn_call *c = j->c;
  int D = DIM(c, 'D'), from = 2 * MN_PANEL * i, end = D - from < 2 * MN_PANEL ? D : from + 2 * MN_PANEL;
  int N = (int)(c->in[0].n / D);
  float *pre = c->out[1].data;
  const mn_bf16 *bf16 = j->x->bf16;
  for (int g = 0; g < 3; g++) {
    long at = (long)g * D + from;
    mn_few_columns(j->y, 0, N, end - from, mn_panel_of(bf16, j->p->pw, at, D), pre + at, 3 * D, false);
    if (g < 2) mn_few_columns(j->x, 0, N, end - from, mn_panel_of(bf16, j->p->pu, at, D), pre + at, 3 * D, true);
  }
  mn_gate_open(c->in[0].data, c->in[4].data, pre, c->out[2].data, N, D, from, end);
  (void)worker;
}

static void second_part(void *arg, int i, int worker) {
  const columns_job *j = arg;
  const mn_call *c = j->c;
  int D = DIM(c, 'D'), from = 2 * MN_PANEL * i, end = D - from < 2 * MN_PANEL ? D : from + 2 * MN_PANEL;
  int N = (int)(c->in[0].n / D);
  float *pre = c->out[1].data;
  mn_few_columns(j->x, 0, N, end - from, mn_panel_of(j->x->bf16, j->p->pg, from, D), pre + 2 * D + from, 3 * D, true);
  mn_gate_mix(c->in[0].data, pre, c->out[0].data, N, D, from, end);
  (void)worker;
}

static void forward(mn_call *c) {
  int D = DIM(c, 'D');
  long N = c->in[0].n / D;
  mn_ctx *mn = c->ctx;
  const float *x = c->in[0].data, *y = c->in[1].data, *bias = c->in[4].data;
  float *o = c->out[0].data, *pre = c->out[1].data, *rx = c->out[2].data;
  parts p = weights(c);
  if (p.few) {
    mn_few few_x, few_y;
    const columns_job job = { c, &p, &few_x, &few_y };
    const int n = (D + 2 * MN_PANEL - 1) / (2 * MN_PANEL);
    mn_few_open(&few_x, mn_bf16_of(mn), (int)N, D, x, D);
    mn_few_open(&few_y, mn_bf16_of(mn), (int)N, D, y, D);
    mn_parallel_for(mn, n, first_part, (void *)&job);
    mn_few_open(&few_x, mn_bf16_of(mn), (int)N, D, rx, D);              /* in place of x */
    mn_parallel_for(mn, n, second_part, (void *)&job);
    return;
  }
  const int most = (int)(N < MN_PIECE ? N : MN_PIECE);
  const float *pw = mn_gemm_pack(mn, 0, true, most, 3 * D, D, p.w, D), *pu = mn_gemm_pack(mn, 1, true, most, 2 * D, D, p.u, D);
  const float *pg = mn_gemm_pack(mn, 2, true, most, D, D, p.ug, D);
  for (long at = 0; at < N; at += MN_PIECE, x += MN_PIECE * D, y += MN_PIECE * D, o += MN_PIECE * D, rx += MN_PIECE * D, pre += 3L * MN_PIECE * D) {
    const long rows = N - at < MN_PIECE ? N - at : MN_PIECE;
    mn_gemm_with(mn, pw, false, true, (int)rows, 3 * D, D, y, D, p.w, D, pre, 3 * D, false);
    mn_gemm_with(mn, pu, false, true, (int)rows, 2 * D, D, x, D, p.u, D, pre, 3 * D, true);
    MN_FOR(mn, rows * D * 4, n, 0, rows, 64, mn_gate_open(x + n * D, bias, pre + n * 3 * D, rx + n * D, rows - n < 64 ? rows - n : 64, D, 0, D));
    mn_gemm_with(mn, pg, false, true, (int)rows, D, D, rx, D, p.ug, D, pre + 2 * D, 3 * D, true);
    MN_FOR(mn, rows * D * 4, n, 0, rows, 64, mn_gate_mix(x + n * D, pre + n * 3 * D, o + n * D, rows - n < 64 ? rows - n : 64, D, 0, D));
  }
}

/* The arrays of one piece of rows. */
typedef struct piece { const float *x, *y, *pre, *rx, *d_o; float *dx, *dy; long rows; } piece;

static piece piece_of(const mn_call *c, float *unwanted, long at, long N) {
  const int D = DIM(c, 'D');
  float *dx = c->in[0].grad;
  return (piece){ c->in[0].data + at * D, c->in[1].data + at * D, c->out[1].data + at * 3 * D, c->out[2].data + at * D, c->out[0].grad + at * D,
                  dx ? dx + at * D : unwanted, MN_AT(c->in[1].grad, at * D), N - at < MN_PIECE ? N - at : MN_PIECE };
}

static void backward(mn_call *c) {
  const int D = DIM(c, 'D');
  const long N = c->in[0].n / D, most = N < MN_PIECE ? N : MN_PIECE;
  mn_ctx *mn = c->ctx;
  const float *w = c->in[2].data, *u = c->in[3].data, *ug = u + 2L * D * D;
  float *dp = mn_scratch(mn, 0, most * 5 * D), *drx = dp + most * 3 * D;
  float *dw = c->in[2].grad, *du = c->in[3].grad, *db = c->in[4].grad;
  const float *pg = mn_gemm_pack(mn, 1, false, (int)most, D, D, ug, D);
  const float *pu = c->in[0].grad ? mn_gemm_pack(mn, 2, false, (int)most, D, 2 * D, u, D) : NULL;
  const float *pw = c->in[1].grad ? mn_gemm_pack(mn, 3, false, (int)most, D, 3 * D, w, D) : NULL;
  for (int d = 0; db && d < D; d++) db[d] = 0;
  for (long at = 0; at < N; at += MN_PIECE) {
    const piece p = piece_of(c, drx + most * D, at, N);
    const int rows = (int)p.rows;
    MN_FOR(mn, p.rows * D * 4, n, 0, p.rows, 64,
      mn_gate_undo_mix(p.x + n * D, p.pre + n * 3 * D, p.d_o + n * D, dp + n * 3 * D, p.dx + n * D, p.rows - n < 64 ? p.rows - n : 64, D));
    mn_gemm_with(mn, pg, false, false, rows, D, D, dp + 2 * D, 3 * D, ug, D, drx, D, false);
    MN_FOR(mn, p.rows * D * 4, n, 0, p.rows, 64,
      mn_gate_undo_open(p.x + n * D, p.pre + n * 3 * D, drx + n * D, dp + n * 3 * D, p.dx + n * D, p.rows - n < 64 ? p.rows - n : 64, D));
    if (c->in[0].grad) mn_gemm_with(mn, pu, false, false, rows, D, 2 * D, dp, 3 * D, u, D, p.dx, D, true);
    if (p.dy) mn_gemm_with(mn, pw, false, false, rows, D, 3 * D, dp, 3 * D, w, D, p.dy, D, false);
    if (dw) mn_gemm(mn, true, false, 3 * D, D, rows, dp, 3 * D, p.y, D, dw, D, at > 0);
    if (du) {
      mn_gemm(mn, true, false, 2 * D, D, rows, dp, 3 * D, p.x, D, du, D, at > 0);
      mn_gemm(mn, true, false, D, D, rows, dp + 2 * D, 3 * D, p.rx, D, du + 2L * D * D, D, at > 0);
    }
    for (long n = 0; db && n < p.rows; n++) {
      MN_PRAGMA(omp simd)
      for (int d = 0; d < D; d++) db[d] -= dp[n * 3 * D + D + d];
    }
  }
}

static double batch_parallel(const mn_call *c) {
  int D = DIM(c, 'D');
  return few_rows(c) && !c->in[2].timed && !c->in[3].timed && !c->in[4].timed ? 6.0 * (double)c->in[0].n * D : 0;
}

const mn_op mn_op_gru_gate = {
  .sig = "x[...,D] y[...,D] w[3,D,D] u[3,D,D] bias[D] -> o[...,D] ~~pre[...,?] ~~rx[...,D] ~~packed[?,?,?]",
  .doc = "o = (1-z)*x + z*g, the gate of GTrXL (Parisotto et al. 2020, 3.2). w = w_r, w_z, w_g; u = u_r, u_z, u_g",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward, .batch_parallel = batch_parallel,
};
