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

/* ---- largest ---- */

#define FAR (-1e38f)

/* The maximum after a token whose largest is *most: that of before is moved, and *most rounded up so that it is no less.  Returns shrink. */
static __device__ __forceinline__ float raise(float old, float by, float *most) {
  const float moved = old + by, lost = mn_lost_in_sum(old, by);
  *most = mn_at_least(*most, moved);
  if (moved - *most + lost > 0) *most += fabsf(*most) * 0x1p-23f;
  return mn_expf(moved - *most + lost);
}

/* The largest of every token, in `top`; of a single row, or where tokens stand alone, everything. */
CU_KERNEL largest_of_tokens(const float *z, const uint8_t *done, const float *first, const float *a, float *top,
                            float *shrink, float *last, long from, long rows, cu_divisor heads,
                            cu_divisor H, long B, long M, bool alone, bool whole, int width) {
  const cu_team team(width);
  for (long i = team.first(); team.any(i, rows); i = team.next(i)) {
    const long row = from + i;
    float most = -INFINITY;
    for (long m = team.lane; i < rows && m < M; m += width) most = z[row * M + m] > most ? z[row * M + m] : most;
    most = team.max(most);
    if (i >= rows || team.lane) continue;
    top[row] = most;
    if (!whole) continue;
    long bh, h;
    const long t = heads.divide(row, &bh), b = H.divide(bh, &h);
    const float old = alone || (done && done[t * B + b]) ? FAR : first ? first[bh] : FAR;
    shrink[row] = raise(old, a ? a[row] : 0.0f, &most);
    top[row] = most;
    if (i + heads.by >= rows) last[bh] = most;
  }
}

CU_KERNEL largest_so_far(const uint8_t *done, const float *first, const float *a, float *top, float *shrink, float *last, long heads,
                         cu_divisor H, long B, long t0, long t1) {
  CU_LOOP(bh, heads) {
    long h;
    const long b = H.divide(bh, &h);
    float most = first ? first[bh] : FAR;
    for (long from = t0; from < t1; from += AHEAD) {
      float tops[AHEAD], moves[AHEAD];
      bool resets[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = from + k;
        tops[k] = t < t1 ? top[t * heads + bh] : 0.0f;
        moves[k] = a && t < t1 ? a[t * heads + bh] : 0.0f;
        resets[k] = t < t1 && done && done[t * B + b];
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = from + k;
        if (t >= t1) break;
        const float old = resets[k] ? FAR : most;
        most = tops[k];
        shrink[t * heads + bh] = raise(old, moves[k], &most);
        top[t * heads + bh] = most;
      }
    }
    last[bh] = most;
  }
}

static void largest_forward(mn_call *c) {
  const long B = DIM(c, 'B'), H = DIM(c, 'H'), M = DIM(c, 'M'), heads = B * H, rows = (c->t1 - c->t0) * heads;
  const bool alone = OPT(c, 0) != 0, whole = alone || c->t1 - c->t0 == 1;
  const float *first = c->t0 ? c->out[2].data : c->in[2].data, *a = c->in[3].data;
  const int width = cu_team_width(M);
  CU_LAUNCH(largest_of_tokens, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, c->in[0].data,
            c->in[1].u8, first, a, c->out[0].data, c->out[1].data, c->out[2].data, c->t0 * heads, rows,
            cu_divisor(heads), cu_divisor(H), B, M, alone, whole, width);
  if (whole) return;
  CU_LAUNCH(largest_so_far, cu_blocks(heads), CU_THREADS, 0, c->in[1].u8, first, a, c->out[0].data,
            c->out[1].data, c->out[2].data, heads, cu_divisor(H), B, (long)c->t0, (long)c->t1);
}

MN_KERNEL(running_max, largest_forward, NULL)

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
