/* linear.c -- y = act(x w^T + b): a matrix product with its bias and activation in one pass.
** Acting computes a few rows at a time, again and again with the same weights: the first rows of a run
** leave the weights packed (packed_gemm.h) for the rest. */
#include "numerics/packed_gemm.h"
#include "numerics/activation.h"

static int shape(mn_call *c) {   /* packed weights are kept only where rows will come */
  bool rows = c->in[0].timed;
  mn_arg *packed = &c->out[1];
  packed->shape[0] = rows ? mn_panels(DIM(c, 'O')) : 1;
  packed->shape[1] = rows ? DIM(c, 'I') : 1;
  packed->shape[2] = rows ? MN_PANEL : 1;
  return 0;
}

static void pack(mn_call *c) {
  if (mn_packs(c)) mn_pack(c->ctx, c->in[1].data, DIM(c, 'I'), DIM(c, 'O'), true, c->out[1].data);
}

/* ---- a few rows ---- */

static bool few_rows(const mn_call *c) { return c->by_rows && c->in[0].n <= (long)MN_PACKED_ROWS * DIM(c, 'I'); }
enum { TILE = 32 };              /* rows of a tile */
static int pieces(const mn_call *c) { return (DIM(c, 'O') + 2 * MN_PANEL - 1) / (2 * MN_PANEL); }

/* Product, bias and activation of 64 columns, counted through all calls.  The product goes to a tile in the first cache: the rows
** of y are in no cache while acting, and what is stored there cannot be read again at once. */
typedef struct columns_job { mn_call *const *calls; const mn_few *x; } columns_job;

static void columns_task(void *arg, int i, int worker) {
  (void)worker;
  const columns_job *j = arg;
  mn_call *const *at = j->calls;
  for (; i >= pieces(*at); at++) i -= pieces(*at);
  const mn_call *c = *at;
  int I = DIM(c, 'I'), O = DIM(c, 'O'), from = 2 * MN_PANEL * i, n = O - from < 2 * MN_PANEL ? O - from : 2 * MN_PANEL;
  const float *b = c->in[2].data, *panel = mn_panel_of(j->x->bf16, c->out[1].data, from, I);
  float *y = c->out[0].data + from;
  for (int m = 0, end; m < j->x->M; m = end) {
    _Alignas(64) float tile[TILE * 2 * MN_PANEL];
    end = m + TILE < j->x->M ? m + TILE : j->x->M;
    mn_few_columns(j->x, m, end, O - from, panel, tile, 2 * MN_PANEL, false);
    mn_finish(tile, 2 * MN_PANEL, y + (long)m * O, O, MN_AT(b, from), end - m, n, (int)OPT(c, 0));
  }
}

/* Layers that none of the others feeds, at once: each meeting of threads costs as much as a small layer. */
static void side_by_side(mn_call *const *calls, int n) {
  mn_few x;
  columns_job job = { calls, &x };
  double work = 0;
  int all = 0;
  mn_few_open(&x, mn_bf16_of(calls[0]->ctx), (int)(calls[0]->in[0].n / DIM(calls[0], 'I')), DIM(calls[0], 'I'), calls[0]->in[0].data, DIM(calls[0], 'I'));
  for (int k = 0; k < n; k++) {
    mn_call *c = calls[k];
    pack(c);
    work += (double)c->in[0].n * DIM(c, 'O');
    all += pieces(c);
  }
  if (work >= MN_ONE_THREAD_WORK) mn_parallel_for(calls[0]->ctx, all, columns_task, &job);
  else for (int i = 0; i < all; i++) columns_task(&job, i, 0);
}

/* Those that read what the first reads, by weights that were there before, cannot read each other. */
static int together(mn_call *const *calls, int n, bool back) {
  int m = 0;
  while (!back && m < n && few_rows(calls[m]) && calls[m]->in[0].data == calls[0]->in[0].data && !calls[m]->in[1].timed &&
         !calls[m]->in[2].timed) m++;
  if (m) side_by_side(calls, m);
  return m;
}

/* ---- any number ---- */

static void forward(mn_call *c) {
  int I = DIM(c, 'I'), O = DIM(c, 'O'), act = (int)OPT(c, 0);
  long N = c->in[0].n / I;
  const float *x = c->in[0].data, *w = c->in[1].data, *b = c->in[2].data;
  float *y = c->out[0].data;
  if (few_rows(c)) {
    side_by_side(&c, 1);
    return;
  }
  pack(c);
  const float *panels = mn_gemm_pack(c->ctx, 0, true, (int)(N < MN_PIECE ? N : MN_PIECE), O, I, w, I);
  for (long from = 0; from < N; from += MN_PIECE) {
    const long end = N - from < MN_PIECE ? N : from + MN_PIECE;
    mn_gemm_with(c->ctx, panels, false, true, (int)(end - from), O, I, x + from * I, I, w, I, y + from * O, O, false);
    if (b || act != MN_NONE) MN_FOR(c->ctx, (end - from) * O, r, from, end, 64, mn_finish(y + r * O, O, y + r * O, O, b, end - r < 64 ? end - r : 64, O, act));
  }
}

static void backward(mn_call *c) {
  int I = DIM(c, 'I'), O = DIM(c, 'O'), act = (int)OPT(c, 0);
  long N = c->in[0].n / I;
  const float *x = c->in[0].data, *w = c->in[1].data, *y = c->out[0].data, *dz = c->out[0].grad;
  float *dx = c->in[0].grad, *dw = c->in[1].grad, *db = c->in[2].grad;
  float *z = act != MN_NONE ? mn_scratch(c->ctx, 0, (N < MN_PIECE ? N : MN_PIECE) * O) : NULL;
  const float *panels = dx ? mn_gemm_pack(c->ctx, 1, false, (int)(N < MN_PIECE ? N : MN_PIECE), I, O, w, I) : NULL;
  for (long from = 0; from < N; from += MN_PIECE) {
    const long n = N - from < MN_PIECE ? N - from : MN_PIECE;
    const float *d = dz + from * O;
    if (z) {
      MN_FOR(c->ctx, n * O, r, 0, n, 64, mn_undo(y + (from + r) * O, d + r * O, z + r * O, (n - r < 64 ? n - r : 64) * O, act));
      d = z;
    }
    if (dx) mn_gemm_with(c->ctx, panels, false, false, (int)n, I, O, d, O, w, I, dx + from * I, I, mn_accumulates(c, 0));
    if (dw) mn_gemm(c->ctx, true, false, O, I, (int)n, d, O, x + from * I, I, dw, I, mn_accumulates(c, 1) || from);
    if (db) MN_FOR(c->ctx, n * O, o, 0, O, 64, mn_column_sums(d, n, O, o, O - o < 64 ? O : o + 64, db, mn_accumulates(c, 2) || from));
  }
}

static double batch_parallel(const mn_call *c) {
  return few_rows(c) && !c->in[1].timed && !c->in[2].timed ? (double)c->in[0].n * DIM(c, 'O') : 0;
}

const mn_op mn_op_linear = {
  .sig = "x[...,I] w[O,I] b?[O] -> y[...,O] ~~packed[?,?,?] | act=none|relu|sigmoid|tanh|elu1",
  .doc = "y = act(x w^T + b): torch.nn.Linear with an activation",
  .time = MN_PER_ROW, .accumulates = true, .sums_rows = true,
  .shape = shape, .forward = forward, .backward = backward, .fuse = together, .batch_parallel = batch_parallel,
};
