/* shapes.cu -- concat slice transpose reshape expand_time probe_constant: copy values without arithmetic. */
#include "runtime/strided_copy.cuh"
#include "lib/repeat.cuh"
#include "lib/sums.cuh"
extern "C" {
#include "ops/axis.h"
}

static int axis_of(const mn_call *c, int option, const mn_arg *x) {
  const int axis = (int)OPT(c, option);
  return axis < 0 ? axis + x->ndim : axis;
}

/* ---- concat: a row of y is a row of a and one of b ---- */

/* Between y and both parts at once: into y, or out of it into those parts that are not NULL. */
CU_KERNEL join(float *y, float *a, float *b, long n, cu_divisor row, long of_a, bool into) {
  CU_LOOP(i, n) {
    long at;
    const long o = row.divide(i, &at);
    float *part = at < of_a ? a : b;
    if (part) part += at < of_a ? o * of_a + at : o * (row.by - of_a) + at - of_a;
    if (into) y[i] = *part;
    else if (part) *part = y[i];
  }
}

static void concat(const mn_call *c, float *y, float *a, float *b, bool into) {
  const mn_span s = mn_span_of(&c->out[0], axis_of(c, 0, &c->in[0]));
  const long n = c->out[0].n;
  CU_LAUNCH(join, cu_blocks(n, 2), CU_THREADS, 0, y, a, b, n, cu_divisor(n / s.outer), c->in[0].n / s.outer,
            into);
}

static void concat_forward(mn_call *c) { concat(c, c->out[0].data, c->in[0].data, c->in[1].data, true); }
static void concat_backward(mn_call *c) { concat(c, c->out[0].grad, c->in[0].grad, c->in[1].grad, false); }
MN_KERNEL(concat, concat_forward, concat_backward)

/* ---- slice ---- */

struct Slice { mn_span x; long from, length; };

static Slice slice_of(const mn_call *c) {
  const int axis = axis_of(c, 0, &c->in[0]);
  Slice s = { mn_span_of(&c->in[0], axis), (long)OPT(c, 1), c->out[0].shape[axis] };
  if (s.from < 0) s.from += s.x.size;
  return s;
}

static void slice_forward(mn_call *c) {
  const Slice s = slice_of(c);
  const long inner = s.x.inner;
  cu_copy_rows(c->out[0].data, s.length * inner, c->in[0].data + s.from * inner, s.x.size * inner, s.x.outer,
               s.length * inner, false);
}

/* dx = dy in the slice and 0 outside, in one go. */
CU_KERNEL unslice(const float *dy, float *dx, long n, cu_divisor row, long from, long length) {
  CU_LOOP(i, n) {
    long at;
    const long o = row.divide(i, &at);
    dx[i] = at >= from && at < from + length ? dy[o * length + at - from] : 0.0f;
  }
}

static void slice_backward(mn_call *c) {
  const Slice s = slice_of(c);
  const long inner = s.x.inner, step = s.x.size * inner;
  const float *dy = c->out[0].grad;
  float *dx = c->in[0].grad;
  if (mn_accumulates(c, 0)) {
    cu_copy_rows(dx + s.from * inner, step, dy, s.length * inner, s.x.outer, s.length * inner, true);
    return;
  }
  CU_LAUNCH(unslice, cu_blocks(c->in[0].n, 2), CU_THREADS, 0, dy, dx, c->in[0].n, cu_divisor(step),
            s.from * inner, s.length * inner);
}

MN_KERNEL(slice, slice_forward, slice_backward)

/* ---- transpose: to[outer, B, middle, A, inner] = x[outer, A, middle, B, inner] ---- */

enum { TILE = 32, TILE_ROWS = CU_THREADS / TILE };

struct Swap { long A, B, middle, inner; };

/* Neighbours stay together: a thread for each number. */
CU_KERNEL swap_runs(const float *x, float *to, long n, const Swap &s, cu_divisor inner, cu_divisor A,
                    cu_divisor middle, cu_divisor B) {
  CU_LOOP(i, n) {
    long k, a, m, b;
    const long o = B.divide(middle.divide(A.divide(inner.divide(i, &k), &a), &m), &b);
    to[i] = x[(((o * s.A + a) * s.middle + m) * s.B + b) * s.inner + k];
  }
}

/* inner = 1: tiles of 32 x 32 through shared memory, read along b and written along a.  The odd row of the
** tile keeps its columns in different banks. */
CU_KERNEL swap_tiles(const float *x, float *to, const Swap &s, long tiles, cu_divisor tiles_a, cu_divisor tiles_b,
                     cu_divisor middle) {
  const int column = (int)threadIdx.x % TILE, first = (int)threadIdx.x / TILE;
  cu_smem<float> tile = CU_SHARED(float, 0);
  for (long t = blockIdx.x; t < tiles; t += gridDim.x) {
    long ta, tb, m;
    const long o = middle.divide(tiles_b.divide(tiles_a.divide(t, &ta), &tb), &m);
    for (int r = first; r < TILE; r += TILE_ROWS) {
      const long a = ta * TILE + r, b = tb * TILE + column;
      if (a < s.A && b < s.B) tile[r * (TILE + 1) + column] = x[((o * s.A + a) * s.middle + m) * s.B + b];
    }
    __syncthreads();
    for (int r = first; r < TILE; r += TILE_ROWS) {
      const long a = ta * TILE + column, b = tb * TILE + r;
      if (a < s.A && b < s.B) to[((o * s.B + b) * s.middle + m) * s.A + a] = tile[column * (TILE + 1) + r];
    }
    __syncthreads();
  }
}

static void swap(const mn_call *c, const mn_arg *from, const float *x, float *to) {
  const int a = axis_of(c, 0, from), b = axis_of(c, 1, from);
  if (a == b) return cu_copy(to, x, from->n);
  const mn_span first = mn_span_of(from, a < b ? a : b), last = mn_span_of(from, a < b ? b : a);
  const Swap s = { first.size, last.size, first.inner / (last.size * last.inner), last.inner };
  if (s.inner > 1) {
    CU_LAUNCH(swap_runs, cu_blocks(from->n, 2), CU_THREADS, 0, x, to, from->n, s, cu_divisor(s.inner),
              cu_divisor(s.A), cu_divisor(s.middle), cu_divisor(s.B));
    return;
  }
  const long ta = cu_parts(s.A, TILE), tb = cu_parts(s.B, TILE), tiles = ta * tb * s.middle * first.outer;
  CU_LAUNCH(swap_tiles, (unsigned)cu_min(tiles, (long)CU_BLOCKS), CU_THREADS, TILE * (TILE + 1) * sizeof(float),
            x, to, s, tiles, cu_divisor(ta), cu_divisor(tb), cu_divisor(s.middle));
}

static void transpose_forward(mn_call *c) { swap(c, &c->in[0], c->in[0].data, c->out[0].data); }
static void transpose_backward(mn_call *c) { swap(c, &c->out[0], c->out[0].grad, c->in[0].grad); }
MN_KERNEL(transpose, transpose_forward, transpose_backward)

/* ---- whole tensors ---- */

static void reshape_forward(mn_call *c) { cu_copy(c->out[0].data, c->in[0].data, c->in[0].n); }
static void reshape_backward(mn_call *c) { cu_copy(c->in[0].grad, c->out[0].grad, c->in[0].n); }
MN_KERNEL(reshape, reshape_forward, reshape_backward)

/* x [n] in every one of the rows of y */
static void repeat(const mn_arg *x, const mn_arg *y) { cu_spread(y->data, x->data, 1, y->n / x->n, x->n, 1); }

static void every_step_forward(mn_call *c) { repeat(&c->in[0], &c->out[0]); }
static void every_step_backward(mn_call *c) {
  const long n = c->in[0].n;
  if (c->in[0].grad) cu_sum(c, cu_fold_of(1, c->out[0].n / n, n), cu_number{ c->out[0].grad }, c->in[0].grad);
  cu_zero_grad(&c->in[1]);
}
MN_KERNEL(expand_time, every_step_forward, every_step_backward)

static void shown_forward(mn_call *c) { repeat(&c->in[1], &c->out[0]); }
MN_KERNEL(probe_constant, shown_forward, NULL)
