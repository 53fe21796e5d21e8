/* normalise.cu -- kernels of normalise; a team of threads per row.
** engine/ops/normalise.c explains denominators of 0 and the form of the gradients. */
#include "lib/row_teams.cuh"

enum By { L2, SUM, RMS };

static __device__ float sum_of(const cu_team &team, const float *x, long D) {
  float sum = 0;
  for (long i = team.lane; i < D; i += team.width) sum += x[i];
  return team.sum(sum);
}

/* sqrt(sum of x^2 * factor); where squares leave the range of floats, of x over its largest number.
** All threads of a block come to every sum, whatever their row holds. */
static __device__ float length_of(const cu_team &team, const float *x, long D, float factor) {
  float plain = 0, top = 0, scaled = 0;
  for (long i = team.lane; i < D; i += team.width) plain += x[i] * x[i], top = fmaxf(top, fabsf(x[i]));
  plain = team.sum(plain);
  top = team.max(top);
  const bool fine = plain > 1e-30f && plain < 1e30f, odd = !fine && top > 0 && top < INFINITY;
  for (long i = team.lane; odd && i < D; i += team.width) scaled += (x[i] / top) * (x[i] / top);
  scaled = team.sum(scaled);
  return fine ? sqrtf(plain * factor) : odd ? top * sqrtf(scaled * factor) : top;
}

CU_KERNEL normalise_rows(const float *x_, float *y, float *stats, long rows, long D_, By by, float eps,
                         int width) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    const float *x = x_ + row * D_;
    const long D = row < rows ? D_ : 0;
    const float size = by == SUM ? sum_of(team, x, D) : length_of(team, x, D, by == RMS ? 1 / (float)D_ : 1.0f);
    const float den = by == RMS ? hypotf(size, sqrtf(eps)) : size + eps;
    const bool empty = fabsf(den) < 1.2e-38f;
    for (long i = team.lane; i < D; i += width) y[row * D_ + i] = empty ? 0.0f : x[i] / den;
    if (D && team.lane == 0) stats[2 * row] = empty ? 0.0f : den, stats[2 * row + 1] = size;
  }
}

/* dy at the largest |x| of a row, the first of equals. */
static __device__ float at_largest(const cu_team &team, const float *x, const float *dy, long D) {
  float top = -1;
  long where = 0;
  for (long i = team.lane; i < D; i += team.width) if (fabsf(x[i]) > top) top = fabsf(x[i]), where = i;
  const float best = team.max(top);
  const long found = team.all(top == best && top >= 0 ? where : D, [](long a, long b) { return b < a ? b : a; });
  return D && found < D ? dy[found] : 0.0f;
}

CU_KERNEL normalise_slopes(const float *x_, const float *y_, const float *stats, const float *dy_,
                           float *dx_, long rows, long D_, By by, float eps, int width) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    const long D = row < rows ? D_ : 0;
    const float *x = x_ + row * D_, *y = y_ + row * D_, *dy = dy_ + row * D_;
    const float den = D ? stats[2 * row] : 0.0f, size = D ? stats[2 * row + 1] : 0.0f;
    const float rest = eps / den, kept = size / den, shift = by == SUM ? at_largest(team, x, dy, D) : 0.0f;
    float dot = 0, *dx = dx_ + row * D_;
    for (long i = team.lane; i < D; i += width)
      dot += (by != L2 ? y[i] : size > 0 ? x[i] / size : 0.0f) * (dy[i] - shift);
    dot = team.sum(dot);
    for (long i = team.lane; i < D; i += width) {
      float d = dy[i];
      if (by == L2) d = rest * d + kept * (d - (size > 0 ? x[i] / size * dot : 0.0f));
      if (by == SUM) d = d - shift - dot + shift * rest;
      if (by == RMS) d -= y[i] * (dot / (float)D_);
      dx[i] = den == 0 ? 0.0f : d / den;
    }
  }
}

static void forward(mn_call *c) {
  const long D = DIM(c, 'D'), rows = c->in[0].n / D;
  const int width = cu_team_width(D);
  CU_LAUNCH(normalise_rows, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, c->in[0].data,
            c->out[0].data, c->out[1].data, rows, D, (By)OPT(c, 0), (float)OPT(c, 1), width);
}

static void backward(mn_call *c) {
  const long D = DIM(c, 'D'), rows = c->in[0].n / D;
  const int width = cu_team_width(D);
  CU_LAUNCH(normalise_slopes, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, c->in[0].data,
            c->out[0].data, c->out[1].data, c->out[0].grad, c->in[0].grad, rows, D, (By)OPT(c, 0), (float)OPT(c, 1),
            width);
}

MN_KERNEL(normalise, forward, backward)
