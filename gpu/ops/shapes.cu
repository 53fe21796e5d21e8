/* shapes.cu -- concat slice transpose permute flip roll pad expand tril triu reshape expand_time probe_constant: copy values without
** arithmetic; and cast. */
#include "runtime/strided_copy.cuh"
#include "lib/strided.cuh"
#include "lib/sums.cuh"
extern "C" {
#include "ops/axis.h"
#include "ops/cast.h"
#include "ops/walks.h"
}

static int axis_of(const mn_call *c, int option, const mn_arg *x) { return mn_axis_of(x, OPT(c, option)); }

/* A kernel for elements of four bytes, or of one. */
#define BY_ITEM(dtype, four, one) do { if (mn_item(dtype) == 4) four; else one; } while (0)

/* ---- concat: a row of y is a row of each part ---- */

enum { PARTS = 8 };

namespace { struct Parts { char *at[PARTS]; long end[PARTS]; int n; }; }         /* end: where a part's row ends in that of y */

/* Between y and all parts at once: into y, or out of it into those parts that are not NULL. */
template <class T> CU_KERNEL join(T *y, const Parts &parts, long n, cu_divisor row, bool into) {
  CU_LOOP(i, n) {
    long at;
    const long o = row.divide(i, &at);
    int k = 0;
    while (at >= parts.end[k]) k++;
    const long from = k ? parts.end[k - 1] : 0;
    T *part = (T *)parts.at[k];
    if (part) part += o * (parts.end[k] - from) + at - from;
    if (into) y[i] = *part;
    else if (part) *part = y[i];
  }
}

static void concat(const mn_call *c, void *y, bool into) {
  const long n = c->out[0].n, outer = mn_span_of(&c->out[0], axis_of(c, 0, &c->out[0])).outer;
  Parts parts = {};
  long end = 0;
  for (int k = 0; k < c->n_in; k++) {
    if (!c->in[k].data) continue;
    parts.at[parts.n] = (char *)(into ? c->in[k].data : c->in[k].grad);
    parts.end[parts.n++] = end += c->in[k].n / outer;
  }
  const cu_divisor row(n / outer);
  BY_ITEM(c->out[0].dtype, CU_LAUNCH(join<float>, cu_blocks(n, 2), CU_THREADS, 0, (float *)y, parts, n, row, into),
          CU_LAUNCH(join<uint8_t>, cu_blocks(n, 2), CU_THREADS, 0, (uint8_t *)y, parts, n, row, into));
}

static void concat_forward(mn_call *c) { concat(c, c->out[0].data, true); }
static void concat_backward(mn_call *c) { concat(c, c->out[0].grad, false); }
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
  cu_move_rows(c->in[0].dtype, c->out[0].data, s.length * inner, mn_element(&c->in[0], s.from * inner), s.x.size * inner, s.x.outer,
               s.length * inner);
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
  if (a == b || from->dtype == MN_U8) return cu_strided_copy(mn_swapped(c, from), from->dtype, to, x);
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

/* ---- permute, flip, expand ---- */

static void permute_forward(mn_call *c) { cu_strided_copy(mn_permuted(c, false), c->in[0].dtype, c->out[0].data, c->in[0].data); }
static void permute_backward(mn_call *c) { cu_strided_copy(mn_permuted(c, true), MN_F32, c->in[0].grad, c->out[0].grad); }
MN_KERNEL(permute, permute_forward, permute_backward)

static void flip_forward(mn_call *c) { cu_strided_copy(mn_flipped(c), c->in[0].dtype, c->out[0].data, c->in[0].data); }
static void flip_backward(mn_call *c) { cu_strided_copy(mn_flipped(c), MN_F32, c->in[0].grad, c->out[0].grad); }
MN_KERNEL(flip, flip_forward, flip_backward)

static void expand_forward(mn_call *c) { cu_strided_copy(mn_expanded(c), c->in[0].dtype, c->out[0].data, c->in[0].data); }

/* Axes along which x stands still are summed. */
static void expand_backward(mn_call *c) {
  const mn_layout l = mn_layout_of(c);
  const int last = l.axes - 1;
  if (c->in[0].n == c->out[0].n) return cu_copy(c->in[0].grad, c->out[0].grad, c->in[0].n);
  cu_fold f;
  long out = 1;
  for (int i = last; i >= 0; i--) {
    const bool kept = l.stride[0][i] > 0;
    const long step[CU_WALKED] = { out };
    (kept ? f.keep : f.over).add(l.size[i], step);
    (kept ? f.kept : f.summed) *= l.size[i];
    out *= l.size[i];
  }
  f.along = l.stride[0][last] == 0;
  cu_sum(c, f, cu_number{ c->out[0].grad }, c->in[0].grad);
}
MN_KERNEL(expand, expand_forward, expand_backward)

/* ---- roll, pad ---- */

static void roll(const mn_call *c, long by, const void *from, void *to) {
  const mn_arg *x = &c->in[0];
  const mn_span s = mn_span_of(x, axis_of(c, 1, x));
  by = (by % s.size + s.size) % s.size;
  const long step = s.size * s.inner, moved = by * s.inner, rest = step - moved, item = mn_item(x->dtype);
  cu_move_rows(x->dtype, (char *)to + moved * item, step, from, step, s.outer, rest);
  cu_move_rows(x->dtype, to, step, (const char *)from + rest * item, step, s.outer, moved);
}

static void roll_forward(mn_call *c) { roll(c, (long)OPT(c, 0), c->in[0].data, c->out[0].data); }
static void roll_backward(mn_call *c) { roll(c, -(long)OPT(c, 0), c->out[0].grad, c->in[0].grad); }
MN_KERNEL(roll, roll_forward, roll_backward)

template <class T> CU_KERNEL pad_rows(const T *x, T *y, long n, cu_divisor row, long before, long size, T value) {
  CU_LOOP(i, n) {
    long at;
    const long o = row.divide(i, &at);
    y[i] = at >= before && at < before + size ? x[o * size + at - before] : value;
  }
}

namespace { struct Pad { long outer, before, size, row; }; }

static Pad pad_of(const mn_call *c) {
  const mn_span s = mn_span_of(&c->in[0], axis_of(c, 0, &c->in[0]));
  return { s.outer, (long)OPT(c, 1) * s.inner, s.size * s.inner, c->out[0].n / s.outer };
}

static void pad_forward(mn_call *c) {
  const Pad p = pad_of(c);
  const mn_arg *x = &c->in[0], *y = &c->out[0];
  const cu_divisor row(p.row);
  const double value = OPT(c, 3);
  if (x->dtype == MN_F32) CU_LAUNCH(pad_rows<float>, cu_blocks(y->n, 2), CU_THREADS, 0, x->data, y->data, y->n, row, p.before, p.size, (float)value);
  else if (x->dtype == MN_I32)
    CU_LAUNCH(pad_rows<int32_t>, cu_blocks(y->n, 2), CU_THREADS, 0, x->i32, y->i32, y->n, row, p.before, p.size, (int32_t)value);
  else CU_LAUNCH(pad_rows<uint8_t>, cu_blocks(y->n, 2), CU_THREADS, 0, x->u8, y->u8, y->n, row, p.before, p.size, (uint8_t)value);
}

static void pad_backward(mn_call *c) {
  const Pad p = pad_of(c);
  cu_copy_rows(c->in[0].grad, p.size, c->out[0].grad + p.before, p.row, p.outer, p.size, false);
}
MN_KERNEL(pad, pad_forward, pad_backward)

/* ---- tril, triu ---- */

template <class T> CU_KERNEL triangle(const T *x, T *y, long n, cu_divisor N, cu_divisor M, long diagonal, bool upper) {
  CU_LOOP(i, n) {
    long row, column;
    M.divide(N.divide(i, &column), &row);
    y[i] = (upper ? column - row >= diagonal : column - row <= diagonal) ? x[i] : T(0);
  }
}

static void triangle_of(const mn_call *c, bool upper, int dtype, const void *from, void *to) {
  const mn_arg *x = &c->in[0];
  const cu_divisor N(x->shape[x->ndim - 1]), M(x->shape[x->ndim - 2]);
  const long diagonal = (long)OPT(c, 0);
  BY_ITEM(dtype, CU_LAUNCH(triangle<float>, cu_blocks(x->n, 2), CU_THREADS, 0, (const float *)from, (float *)to, x->n, N, M, diagonal, upper),
          CU_LAUNCH(triangle<uint8_t>, cu_blocks(x->n, 2), CU_THREADS, 0, (const uint8_t *)from, (uint8_t *)to, x->n, N, M, diagonal, upper));
}

static void tril_forward(mn_call *c) { triangle_of(c, false, c->in[0].dtype, c->in[0].data, c->out[0].data); }
static void tril_backward(mn_call *c) { triangle_of(c, false, MN_F32, c->out[0].grad, c->in[0].grad); }
MN_KERNEL(tril, tril_forward, tril_backward)

static void triu_forward(mn_call *c) { triangle_of(c, true, c->in[0].dtype, c->in[0].data, c->out[0].data); }
static void triu_backward(mn_call *c) { triangle_of(c, true, MN_F32, c->out[0].grad, c->in[0].grad); }
MN_KERNEL(triu, triu_forward, triu_backward)

/* ---- cast ---- */

CU_KERNEL convert(const void *x, int from, void *y, int to, long n) {
  const float *f = (const float *)x;
  const int32_t *i32 = (const int32_t *)x;
  const uint8_t *u8 = (const uint8_t *)x;
  CU_LOOP(i, n) {
    if (to == MN_F32) ((float *)y)[i] = from == MN_F32 ? f[i] : from == MN_I32 ? (float)i32[i] : (float)u8[i];
    else if (to == MN_I32) ((int32_t *)y)[i] = from == MN_F32 ? mn_float_to_i32(f[i]) : from == MN_I32 ? i32[i] : (int32_t)u8[i];
    else ((uint8_t *)y)[i] = from == MN_F32 ? mn_float_to_u8(f[i]) : from == MN_I32 ? mn_i32_to_u8(i32[i]) : u8[i];
  }
}

static void cast_forward(mn_call *c) {
  const mn_arg *x = &c->in[0], *y = &c->out[0];
  CU_LAUNCH(convert, cu_blocks(x->n, 2), CU_THREADS, 0, x->data, x->dtype, y->data, y->dtype, x->n);
}
static void cast_backward(mn_call *c) { cu_copy(c->in[0].grad, c->out[0].grad, c->in[0].n); }
MN_KERNEL(cast, cast_forward, cast_backward)

/* ---- whole tensors ---- */

static void reshape_forward(mn_call *c) { cu_move_rows(c->in[0].dtype, c->out[0].data, 0, c->in[0].data, 0, 1, c->in[0].n); }
static void reshape_backward(mn_call *c) { cu_copy(c->in[0].grad, c->out[0].grad, c->in[0].n); }
MN_KERNEL(reshape, reshape_forward, reshape_backward)

/* x [n] in every one of the rows of y */
static void repeat(const mn_arg *x, const mn_arg *y) { cu_move_rows(x->dtype, y->data, x->n, x->data, 0, y->n / x->n, x->n); }

static void every_step_forward(mn_call *c) { repeat(&c->in[0], &c->out[0]); }
static void every_step_backward(mn_call *c) {
  const long n = c->in[0].n;
  if (c->in[0].grad) cu_sum(c, cu_fold_of(1, c->out[0].n / n, n), cu_number{ c->out[0].grad }, c->in[0].grad);
  cu_zero_grad(&c->in[1]);
}
MN_KERNEL(expand_time, every_step_forward, every_step_backward)

static void shown_forward(mn_call *c) { repeat(&c->in[1], &c->out[0]); }
MN_KERNEL(probe_constant, shown_forward, NULL)
