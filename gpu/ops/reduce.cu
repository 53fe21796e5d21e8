/* reduce.cu -- sum mean max: reduce an axis, or all of them (engine/ops/axis.h). */
#include "lib/repeat.cuh"
#include "lib/sums.cuh"
extern "C" {
#include "numerics/fast_math.h"
#include "ops/axis.h"
}

static void add_up(const mn_call *c, double scale) {
  const mn_span s = mn_reduced_span(c);
  cu_sum(c, cu_fold_of(s.outer, s.size, s.inner), cu_number{ c->in[0].data }, c->out[0].data, scale);
}

static void spread(const mn_call *c, double scale) {
  const mn_span s = mn_reduced_span(c);
  cu_spread(c->in[0].grad, c->out[0].grad, s.outer, s.size, s.inner, (float)scale);
}

static double part_of(const mn_call *c) { return 1.0 / (double)mn_reduced_span(c).size; }

static void sum_forward(mn_call *c) { add_up(c, 1); }
static void sum_backward(mn_call *c) { spread(c, 1); }
MN_KERNEL(sum, sum_forward, sum_backward)

static void mean_forward(mn_call *c) { add_up(c, part_of(c)); }
static void mean_backward(mn_call *c) { spread(c, part_of(c)); }
MN_KERNEL(mean, mean_forward, mean_backward)

/* ---- max: a number and its place; of equals the first wins, and a NaN over any number ---- */

static __device__ bool wins(float x, int i, float over, int j) {
  if (x != x || over != over) return x != x && (over == over || i < j);
  return x > over || (x == over && i < j);
}

static __device__ uint64_t pack(float x, int i) { return (uint64_t)mn_bits_of(x) << 32 | (uint32_t)i; }
static __device__ float number_of(uint64_t word) { return mn_float_of((uint32_t)(word >> 32)); }
static __device__ int place_of(uint64_t word) { return (int)(uint32_t)word; }

/* The largest of each piece of each row k of x[outer, size, inner]: y and index are [outer * inner, pieces].
** `places` says where x's numbers once stood; NULL: where they stand now. */
CU_KERNEL largest(const float *x, const int32_t *places, long rows, long size, cu_divisor inner,
                  cu_divisor pieces, long piece, int width, float *y, int32_t *index) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    float best = -INFINITY;
    int where = INT32_MAX;
    if (row < rows) {
      long p, i;
      const long k = pieces.divide(row, &p), o = inner.divide(k, &i), end = cu_min((p + 1) * piece, size);
      for (long r = p * piece + team.lane; r < end; r += width) {
        const long at = (o * size + r) * inner.by + i;
        const int place = places ? places[at] : (int)r;
        if (wins(x[at], place, best, where)) best = x[at], where = place;
      }
    }
    const uint64_t word = team.all(pack(best, where), [](uint64_t a, uint64_t b) {
      return wins(number_of(b), place_of(b), number_of(a), place_of(a)) ? b : a;
    });
    if (row < rows && team.lane == 0) y[row] = number_of(word), index[row] = place_of(word);
  }
}

enum { PIECE = 1 << 14 };

static void max_forward(mn_call *c) {
  const mn_span s = mn_reduced_span(c);
  const long sums = s.outer * s.inner, pieces = sums < 256 ? cu_parts(s.size, PIECE) : 1;
  const int width = s.inner > 1 && sums >= 1 << 14 ? 1 : cu_team_width(cu_min(s.size, (long)PIECE));
  float *y = c->out[0].data;
  int32_t *index = c->out[1].i32;
  const bool once = pieces == 1;
  float *part = once ? y : mn_scratch(c->ctx, 0, sums * pieces);
  int32_t *place = once ? index : (int32_t *)mn_scratch(c->ctx, 1, sums * pieces);
  CU_LAUNCH(largest, cu_team_blocks(sums * pieces, width), CU_THREADS, CU_TEAM_SHARED, c->in[0].data,
            nullptr, sums * pieces, s.size, cu_divisor(s.inner), cu_divisor(pieces), once ? s.size : (long)PIECE, width, part,
            place);
  if (once) return;
  const int few = cu_team_width(pieces);
  CU_LAUNCH(largest, cu_team_blocks(sums, few), CU_THREADS, CU_TEAM_SHARED, part, place, sums, pieces,
            cu_divisor(1), cu_divisor(1), pieces, few, y, index);
}

CU_KERNEL max_slope(const float *dy, const int32_t *index, float *dx, long n, cu_divisor size,
                    cu_divisor inner) {
  CU_LOOP(at, n) {
    long i, r;
    const long o = size.divide(inner.divide(at, &i), &r), k = o * inner.by + i;
    dx[at] = index[k] == r ? dy[k] : 0.0f;
  }
}

static void max_backward(mn_call *c) {
  const mn_span s = mn_reduced_span(c);
  const long n = c->in[0].n;
  CU_LAUNCH(max_slope, cu_blocks(n), CU_THREADS, 0, c->out[0].grad, c->out[1].i32, c->in[0].grad, n,
            cu_divisor(s.size), cu_divisor(s.inner));
}

MN_KERNEL(max, max_forward, max_backward)
