/* softmaxes.cu -- softmax log_softmax logsumexp: rows along the last axis, a team of threads to a row.
** A row is read twice or three times, the later ones from the cache. */
#include "lib/row_teams.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

enum Form { SOFTMAX, LOG_SOFTMAX, LOGSUMEXP };

/* The largest of a row, NaNs passed over, and the sum of e^(x - top). */
static __device__ float top_of(const cu_team &team, const float *x, long D, bool real) {
  float top = -INFINITY;
  for (long i = team.lane; real && i < D; i += team.width) top = x[i] > top ? x[i] : top;
  return team.max(top);
}

static __device__ float sum_of_exp(const cu_team &team, const float *x, long D, bool real, float top) {
  float sum = 0;
  for (long i = team.lane; real && i < D; i += team.width) sum += mn_expf(x[i] - top);
  return team.sum(sum);
}

CU_KERNEL values(Form form, const float *x_, float *y_, long rows, long D, int width) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    const bool real = row < rows;
    const float *x = x_ + row * D;
    float top = top_of(team, x, D, real);
    if (form == LOGSUMEXP && fabsf(top) == INFINITY) top = 0;    /* see engine/ops/logsumexp.c */
    const float sum = sum_of_exp(team, x, D, real, top);
    if (!real) continue;
    if (form == LOGSUMEXP) {
      if (team.lane == 0) y_[row] = top + mn_logf(sum);
      continue;
    }
    const float scale = 1 / sum, low = mn_logf(sum);
    float *y = y_ + row * D;
    for (long i = team.lane; i < D; i += width)
      y[i] = form == SOFTMAX ? mn_expf(x[i] - top) * scale : x[i] - top - low;
  }
}

/* softmax: y (dy - sum of y dy); log_softmax: dy - e^y (sum of dy) */
CU_KERNEL slopes(Form form, const float *y_, const float *dy_, float *dx_, long rows, long D, int width) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    const bool real = row < rows;
    const float *y = y_ + row * D, *dy = dy_ + row * D;
    float sum = 0;
    for (long i = team.lane; real && i < D; i += width) sum += form == SOFTMAX ? y[i] * dy[i] : dy[i];
    sum = team.sum(sum);
    for (long i = team.lane; real && i < D; i += width)
      dx_[row * D + i] = form == SOFTMAX ? y[i] * (dy[i] - sum) : dy[i] - mn_expf(y[i]) * sum;
  }
}

static void forward(const mn_call *c, Form form) {
  const long D = DIM(c, 'D'), rows = c->in[0].n / D;
  const int width = cu_team_width(D);
  CU_LAUNCH(values, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, form, c->in[0].data,
            c->out[0].data, rows, D, width);
}

static void backward(const mn_call *c, Form form) {
  const long D = DIM(c, 'D'), rows = c->in[0].n / D;
  const int width = cu_team_width(D);
  CU_LAUNCH(slopes, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, form, c->out[0].data,
            c->out[0].grad, c->in[0].grad, rows, D, width);
}

static void softmax_forward(mn_call *c) { forward(c, SOFTMAX); }
static void softmax_backward(mn_call *c) { backward(c, SOFTMAX); }
MN_KERNEL(softmax, softmax_forward, softmax_backward)

static void log_softmax_forward(mn_call *c) { forward(c, LOG_SOFTMAX); }
static void log_softmax_backward(mn_call *c) { backward(c, LOG_SOFTMAX); }
MN_KERNEL(log_softmax, log_softmax_forward, log_softmax_backward)

CU_KERNEL logsumexp_slope(const float *x, const float *y, const float *dy, float *dx, long n, cu_divisor D) {
  CU_LOOP(i, n) {
    long unused;
    const long row = D.divide(i, &unused);
    dx[i] = dy[row] * mn_expf(x[i] - (y[row] == -INFINITY ? 0 : y[row]));
  }
}

static void logsumexp_forward(mn_call *c) { forward(c, LOGSUMEXP); }
static void logsumexp_backward(mn_call *c) {
  const long n = c->in[0].n;
  CU_LAUNCH(logsumexp_slope, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->out[0].data, c->out[0].grad,
            c->in[0].grad, n, cu_divisor(DIM(c, 'D')));
}
MN_KERNEL(logsumexp, logsumexp_forward, logsumexp_backward)
