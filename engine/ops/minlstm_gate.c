/* minlstm_gate.c -- the two gates of minLSTM, of which only their shares of the sum count (Feng et al. 2024, section 3.2). */
#include <omp.h>
#include <string.h>
#include "numerics/broadcast.h"
#include "numerics/gates.h"

enum { F, I, V };                /* inputs */
enum { X, KEEP };                /* outputs */

static void part(mn_call *c, float *x, long from, long end) {
  const float *f = c->in[F].data, *i = c->in[I].data, *v = c->in[V].data;
  float *keep = c->out[KEEP].data;
  MN_PRAGMA(omp simd)
  for (long k = from; k < end; k++) mn_minlstm_step(f[k], i[k], v[k], &x[k], &keep[k]);
}

static void forward(mn_call *c) { mn_in_parts(c, c->out[X].data, c->out[X].n, part); }

enum { BLOCK = 1024 };

/* none: zeros, for a gradient that did not arrive; away: three blocks for those that nobody wants. */
static void back_part(mn_call *c, long at, const float *none, float *away) {
  const long n = c->out[X].n - at < BLOCK ? c->out[X].n - at : BLOCK;
  const float *f = c->in[F].data + at, *i = c->in[I].data + at, *v = c->in[V].data + at;
  const float *dx = c->out[X].grad ? c->out[X].grad + at : none, *dkeep = c->out[KEEP].grad ? c->out[KEEP].grad + at : none;
  float *df = c->in[F].grad ? c->in[F].grad + at : away, *di = c->in[I].grad ? c->in[I].grad + at : away + BLOCK;
  float *dv = c->in[V].grad ? c->in[V].grad + at : away + 2 * BLOCK;
  MN_PRAGMA(omp simd)
  for (long k = 0; k < n; k++) mn_minlstm_back(f[k], i[k], v[k], dx[k], dkeep[k], &df[k], &di[k], &dv[k]);
}

static void backward(mn_call *c) {
  float *none = mn_scratch(c->ctx, 0, BLOCK), *away = mn_scratch(c->ctx, 1, 3L * BLOCK * mn_threads(c->ctx));
  if (!c->out[X].grad || !c->out[KEEP].grad) memset(none, 0, sizeof(float) * BLOCK);
  MN_FOR(c->ctx, 16.0 * (double)c->out[X].n, at, 0, c->out[X].n, BLOCK, back_part(c, at, none, away + 3 * BLOCK * omp_get_thread_num()));
}

const mn_op mn_op_minlstm_gate = {
  .sig = "f[...] i[...] v[...] -> x[...] keep[...]",
  .doc = "x = v sigma(i) / (sigma(f) + sigma(i)), keep = sigma(f) / (sigma(f) + sigma(i)): what gated_scan adds and keeps in minLSTM (Feng et al. 2024)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
