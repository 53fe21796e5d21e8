/* scans.cu -- position running_max lambda_returns: one value per environment or head is carried through time.
** A thread runs along time; terms that do not depend on the previous row are computed before, or read ahead. */
#include "lib/row_teams.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

enum { AHEAD = 8 };              /* rows whose numbers are read before the first of them is used */

/* ---- position ---- */

CU_KERNEL count_steps(const uint8_t *done, const float *first, float *tick, int32_t *pos, int B, int t0,
                      int t1, int most, int back) {
  CU_LOOP(b, B) {
    const float at = first[b];
    int next = !(at > 0) ? 0 : at < (float)most ? (int)at : most - 1;
    for (long from = t0; from < t1; from += AHEAD) {
      bool resets[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) resets[k] = done && from + k < t1 && done[(from + k) * B + b];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        if (from + k >= t1) break;
        const int here = resets[k] ? 0 : next;
        pos[(from + k) * B + b] = here;
        next = here + 1 == most ? most - back : here + 1;
      }
    }
    tick[b] = (float)next;
  }
}

static void position_forward(mn_call *c) {
  const int B = DIM(c, 'B');
  CU_LAUNCH(count_steps, cu_blocks(B), CU_THREADS, 0, c->in[1].u8,
            c->t0 ? c->out[1].data : c->in[2].data, c->out[1].data, c->out[0].i32, B, c->t0, c->t1, (int)OPT(c, 0),
            (int)OPT(c, 1));
}

MN_KERNEL(position, position_forward, NULL)

/* ---- running_max ---- */

#define FAR (-1e38f)
enum { Z, DONE, C, A };
enum { TOP, SHRINK, LAST };

namespace {
struct Maxima {                  /* row = t*heads + bh */
  const float *z, *first, *a;
  const uint8_t *done;
  float *top, *shrink, *last;
  cu_divisor heads, H;
  long B, M, t0, t1;
  bool alone;

  __device__ __forceinline__ bool begins(long t, long bh) const {
    long h;
    return alone || (done && done[t * B + H.divide(bh, &h)]);
  }

  /* The maximum after row `row` whose largest is most: that of before is moved, and the new one rounded up, so that it is no less. */
  __device__ __forceinline__ float raise(long row, float old, float by, float most) const {
    const float moved = old + by, lost = mn_lost_in_sum(old, by);
    float above = mn_at_least(most, moved);
    if (moved - above + lost > 0) above += fabsf(above) * 0x1p-23f;
    top[row] = above;
    shrink[row] = mn_expf(moved - above + lost);
    return above;
  }
};
}

/* The largest of every token, in `top`; of a single row, or where tokens stand alone, everything. */
CU_KERNEL largest_of_tokens(const Maxima &x, long from, long rows, bool whole, int width) {
  const cu_team team(width);
  for (long i = team.first(); team.any(i, rows); i = team.next(i)) {
    const long row = from + i;
    const float *z = x.z + row * x.M;
    float most = -INFINITY;
    for (long m = team.lane; i < rows && m < x.M; m += width) most = z[m] > most ? z[m] : most;
    most = team.max(most);
    if (i >= rows || team.lane) continue;
    x.top[row] = most;
    if (!whole) continue;
    long bh;
    const long t = x.heads.divide(row, &bh);
    const float old = x.begins(t, bh) || !x.first ? FAR : x.first[bh];
    most = x.raise(row, old, x.a ? x.a[row] : 0.0f, most);
    if (i + x.heads.by >= rows) x.last[bh] = most;
  }
}

CU_KERNEL largest_so_far(const Maxima &x) {
  const long heads = x.heads.by;
  CU_LOOP(bh, heads) {
    float most = x.first ? x.first[bh] : FAR;
    for (long from = x.t0; from < x.t1; from += AHEAD) {
      float tops[AHEAD], moves[AHEAD];
      bool resets[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = cu_min(from + k, x.t1 - 1), row = t * heads + bh;
        tops[k] = x.top[row];
        moves[k] = x.a ? x.a[row] : 0.0f;
        resets[k] = x.begins(t, bh);
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        if (from + k >= x.t1) break;
        most = x.raise((from + k) * heads + bh, resets[k] ? FAR : most, moves[k], tops[k]);
      }
    }
    x.last[bh] = most;
  }
}

/* The largest of every token, and which it is: the first of equal ones. */
CU_KERNEL find_largest(const float *z, float *largest, int32_t *where, long rows, int M, int width) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    float most = -INFINITY;
    for (int m = team.lane; row < rows && m < M; m += width) most = z[row * M + m] > most ? z[row * M + m] : most;
    most = team.max(most);
    int first = M - 1;
    for (int m = team.lane; row < rows && m < first; m += width) first = z[row * M + m] == most ? m : first;
    first = team.all(first, [](int p, int q) { return q < p ? q : p; });
    if (row >= rows || team.lane) continue;
    largest[row] = most;
    where[row] = first;
  }
}

/* Backwards in time.  `largest` becomes the gradient of the largest of each token. */
CU_KERNEL maxima_back(const Maxima &x, const float *dtop, const float *dshrink, const float *dlast, float *largest, float *da, float *dc) {
  const long heads = x.heads.by;
  CU_LOOP(bh, heads) {
    float carry = dlast ? dlast[bh] : 0.0f;
    for (long end = x.t1; end > 0; end -= AHEAD) {
      float tops[AHEAD], shrinks[AHEAD];
      bool fresh[AHEAD], moved[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = cu_max(end - 1 - k, 0L), row = t * heads + bh;
        tops[k] = dtop ? dtop[row] : 0.0f;
        shrinks[k] = dshrink ? dshrink[row] * x.shrink[row] : 0.0f;
        fresh[k] = x.begins(t, bh) || (t == 0 && !x.first);
        const float old = fresh[k] ? FAR : t ? x.top[row - heads] : x.first[bh];
        moved[k] = old + (x.a ? x.a[row] : 0.0f) > largest[row];
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = end - 1 - k, row = t * heads + bh;
        if (t < 0) break;
        const float g = carry + tops[k] - shrinks[k], back = moved[k] ? shrinks[k] + g : shrinks[k];
        largest[row] = moved[k] ? 0.0f : g;
        if (da) da[row] = back;
        carry = fresh[k] ? 0.0f : back;
      }
    }
    if (dc) dc[bh] = carry;
  }
}

CU_KERNEL spread_maxima(const float *w, const int32_t *where, float *dz, cu_divisor M, long n) {
  CU_LOOP(i, n) {
    long m;
    const long row = M.divide(i, &m);
    dz[i] = where[row] == m ? w[row] : 0.0f;
  }
}

static Maxima maxima_of(const mn_call *c) {
  const mn_arg *in = c->in, *out = c->out;
  Maxima x = {};
  x.z = in[Z].data, x.done = in[DONE].u8, x.first = c->t0 ? out[LAST].data : in[C].data, x.a = in[A].data;
  x.top = out[TOP].data, x.shrink = out[SHRINK].data, x.last = out[LAST].data;
  x.B = DIM(c, 'B'), x.M = DIM(c, 'M'), x.heads = cu_divisor(x.B * DIM(c, 'H')), x.H = cu_divisor(DIM(c, 'H'));
  x.t0 = c->t0, x.t1 = c->t1, x.alone = OPT(c, 0) != 0;
  return x;
}

static void maxima_forward(mn_call *c) {
  const Maxima x = maxima_of(c);
  const long heads = x.heads.by, rows = (x.t1 - x.t0) * heads;
  const bool whole = x.alone || x.t1 - x.t0 == 1;
  const int width = cu_team_width(x.M);
  CU_LAUNCH(largest_of_tokens, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, x, x.t0 * heads, rows, whole, width);
  if (!whole) CU_LAUNCH(largest_so_far, cu_blocks(heads), CU_THREADS, 0, x);
}

static void maxima_backward(mn_call *c) {
  Maxima x = maxima_of(c);
  x.t1 = DIM(c, 'T'), x.first = c->in[C].data;
  const long heads = x.heads.by, rows = x.t1 * heads;
  float *dz = c->in[Z].grad, *largest = mn_scratch(c->ctx, 0, rows);
  int32_t *where = (int32_t *)mn_scratch(c->ctx, 1, rows);
  const int width = cu_team_width(x.M);
  CU_LAUNCH(find_largest, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, x.z, largest, where, rows, (int)x.M, width);
  CU_LAUNCH(maxima_back, cu_blocks(heads), CU_THREADS, 0, x, c->out[TOP].grad, c->out[SHRINK].grad, c->out[LAST].grad, largest, c->in[A].grad,
            c->in[C].grad);
  if (dz) CU_LAUNCH(spread_maxima, cu_blocks(c->in[Z].n), CU_THREADS, 0, (const float *)largest, (const int32_t *)where, dz, cu_divisor(x.M),
                    c->in[Z].n);
}

MN_KERNEL(running_max, maxima_forward, maxima_backward)

/* ---- lambda_returns, from the last row to the first ---- */

CU_KERNEL returns(const float *reward, const float *value, const uint8_t *done, float *to, float *advantage,
                  long T, long B, float gamma, float lambda) {
  CU_LOOP(b, B) {
    float next = value[T * B + b], v = next;         /* of the row after */
    for (long end = T; end > 0; end -= AHEAD) {
      float rewards[AHEAD], values[AHEAD];
      bool last[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = end - 1 - k;
        rewards[k] = t < 0 ? 0.0f : reward[t * B + b];
        values[k] = t < 0 ? 0.0f : value[t * B + b];
        last[k] = t < 0 || done[(t + 1) * B + b];
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = end - 1 - k;
        if (t < 0) continue;
        next = rewards[k] + (last[k] ? 0.0f : gamma * ((1 - lambda) * v + lambda * next));
        v = values[k];
        to[t * B + b] = next;
        advantage[t * B + b] = next - v;
      }
    }
  }
}

static void lambda_returns_forward(mn_call *c) {
  const long T = DIM(c, 'T'), B = DIM(c, 'B');
  CU_LAUNCH(returns, cu_blocks(B), CU_THREADS, 0, c->in[0].data, c->in[1].data, c->in[2].u8, c->out[0].data,
            c->out[1].data, T, B, (float)OPT(c, 0), (float)OPT(c, 1));
}

MN_KERNEL(lambda_returns, lambda_returns_forward, NULL)
