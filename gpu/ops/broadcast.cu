/* broadcast.cu -- elementwise ops of two tensors, `where`, comparisons and logic of masks, matched from the right.  Equal shapes end
** as one axis without a division, a trailing vector as two.  As in pointwise.cu the formula is selected at run time and a new op is
** one line in a list.  Where an operand was repeated its gradient is a sum (sums.cuh) of terms that are computed as they are summed,
** and never stored. */
#include "lib/sums.cuh"

enum { A, B, MASK, OUT };                           /* tensors of the walk */
enum Needs { NOTHING = 0, READS_A = 1, READS_B = 2, READS_Y = 4 };   /* what the slopes read */

/* name, y, what the slopes read, d * dy/da, d * dy/db; in a, b, y, the gradient d of y, and m, `where`'s mask */
#define BINARY_OPS(OP) \
  OP(add, a + b, NOTHING, d, d) \
  OP(atan2, atan2f(a, b), READS_A | READS_B, d * (b / (a * a + b * b)), d * (-a / (a * a + b * b))) \
  OP(div, a / b, READS_B | READS_Y, d * (1 / b), d * (-y / b)) \
  OP(maximum, a >= b || a != a ? a : b, READS_A | READS_B, a >= b ? d : d * 0.0f, a >= b ? d * 0.0f : d) \
  OP(minimum, a <= b || a != a ? a : b, READS_A | READS_B, a <= b ? d : d * 0.0f, a <= b ? d * 0.0f : d) \
  OP(mul, a * b, READS_A | READS_B, d * b, d * a) \
  OP(power, powf(a, b), READS_A | READS_B | READS_Y, d * (b == 0 ? 0.0f : b * powf(a, b - 1)), \
     d * (a == 0 && b >= 0 ? 0.0f : y * logf(a))) \
  OP(sub, a - b, NOTHING, d, -d) \
  OP(where, m ? a : b, NOTHING, m ? d : 0.0f, m ? 0.0f : d)

/* name, true where; of any type */
#define COMPARISONS(OP) \
  OP(eq, a == b) OP(ne, a != b) OP(lt, a < b) OP(le, a <= b) OP(gt, a > b) OP(ge, a >= b) \
  OP(logical_and, a && b) OP(logical_or, a || b) OP(logical_xor, !a != !b)

namespace {
#define NAMED(op, ...) op##_formula,
enum Formula { BINARY_OPS(NAMED) COMPARISONS(NAMED) };
}

static __device__ float value_of(Formula f, float a, float b, bool m) {
  switch (f) {
#define VALUE(op, value, ...) case op##_formula: return value;
  BINARY_OPS(VALUE)
  default: return 0;
  }
}

static __device__ float through_a(Formula f, float a, float b, bool m, float d) {
  switch (f) {
#define THROUGH_A(op, value, needs, to_a, to_b) case op##_formula: return to_a;
  BINARY_OPS(THROUGH_A)
  default: return 0;
  }
}
static __device__ float through_b(Formula f, float a, float b, bool m, float y, float d) {
  switch (f) {
#define THROUGH_B(op, value, needs, to_a, to_b) case op##_formula: return to_b;
  BINARY_OPS(THROUGH_B)
  default: return 0;
  }
}

/* What a kernel reads; NULL where its formula has no use for it. */
struct Call {
  Formula f;
  const float *a, *b, *y, *dy;
  const uint8_t *mask;
};

struct Moves { bool a, b, mask; };                  /* along the innermost axis */

static __device__ bool mask_at(const Call &c, long at) { return c.mask && c.mask[at]; }

template <class V> CU_KERNEL binary_value(const Call &c, const cu_walk &walk, Moves moves, V *y, long n) {
  CU_LOOP(i, n) {
    long at[CU_WALKED] = {};
    walk.find(i, at);
    V a, b;
    cu_load(c.a, at[A], moves.a, &a);
    cu_load(c.b, at[B], moves.b, &b);
    y[i] = cu_each(a, [&](int j) {
      return value_of(c.f, cu_lane(a, j), cu_lane(b, j), mask_at(c, at[MASK] + (moves.mask ? j : 0)));
    });
  }
}

/* The gradients of operands that are as large as the output. */
template <class V> CU_KERNEL binary_slopes(const Call &c, const cu_walk &walk, Moves moves, V *da, V *db, long n) {
  CU_LOOP(i, n) {
    long at[CU_WALKED] = {};
    walk.find(i, at);
    V a, b, y, d;
    cu_load(c.a, at[A], moves.a, &a);
    cu_load(c.b, at[B], moves.b, &b);
    cu_load(c.y, at[OUT], true, &y);
    cu_load(c.dy, at[OUT], true, &d);
    if (da) da[i] = cu_each(a, [&](int j) {
      const bool m = mask_at(c, at[MASK] + (moves.mask ? j : 0));
      return through_a(c.f, cu_lane(a, j), cu_lane(b, j), m, cu_lane(d, j));
    });
    if (db) db[i] = cu_each(a, [&](int j) {
      const bool m = mask_at(c, at[MASK] + (moves.mask ? j : 0));
      return through_b(c.f, cu_lane(a, j), cu_lane(b, j), m, cu_lane(y, j), cu_lane(d, j));
    });
  }
}

/* A term of the gradient of a repeated operand. */
struct Slope {
  Call c;
  bool of_b;
  __device__ __forceinline__ float operator()(const long *at) const {
    const float a = c.a ? c.a[at[A]] : 0.0f, b = c.b ? c.b[at[B]] : 0.0f, d = c.dy[at[OUT]];
    const bool m = mask_at(c, at[MASK]);
    return of_b ? through_b(c.f, a, b, m, c.y ? c.y[at[OUT]] : 0.0f, d) : through_a(c.f, a, b, m, d);
  }
};

/* ---- how the tensors lie ---- */

/* The axes of a call from the innermost out, with what each tensor does along them. */
struct Axes {
  int n;
  long size[MN_AXES], stride[MN_AXES][CU_WALKED];
  Moves moves;
};

static Axes axes_of(const mn_call *c, Formula f) {
  const mn_layout l = mn_layout_of(c);
  Axes x = {};
  long out = 1;
  for (int i = l.axes - 1; i >= 0; i--, x.n++) {
    long *s = x.stride[x.n];
    x.size[x.n] = l.size[i];
    s[A] = l.stride[f == where_formula ? 1 : 0][i];
    s[B] = l.stride[f == where_formula ? 2 : 1][i];
    s[MASK] = f == where_formula ? l.stride[0][i] : 0;
    s[OUT] = out;
    out *= l.size[i];
  }
  const long *s = x.stride[0];
  x.moves = { s[A] > 0, s[B] > 0, s[MASK] > 0 };
  return x;
}

/* The walk over the output, `lanes` numbers of the innermost axis at a time. */
static cu_walk walk_of(const Axes &x, int lanes) {
  cu_walk w;
  for (int i = 0; i < x.n; i++) {
    long stride[CU_WALKED];
    for (int k = 0; k < CU_WALKED; k++) stride[k] = x.stride[i][k] * (i ? 1 : lanes);
    w.add(x.size[i] / (i ? 1 : lanes), stride);
  }
  return w;
}

static cu_fold fold_of(const Axes &x, int operand) {
  cu_fold f;
  for (int i = 0; i < x.n; i++) {
    const bool kept = x.stride[i][operand] > 0;
    (kept ? f.keep : f.over).add(x.size[i], x.stride[i]);
    (kept ? f.kept : f.summed) *= x.size[i];
  }
  f.along = x.stride[0][operand] == 0;
  return f;
}

static Call call_of(const mn_call *c, Formula f) {
  Call x = { f, c->in[0].data, c->in[1].data, NULL, NULL, NULL };
  if (f == where_formula) x.mask = c->in[0].u8, x.a = c->in[1].data, x.b = c->in[2].data;
  return x;
}

/* where, for elements of one byte; whole numbers of four are floats to it, as it only copies. */
CU_KERNEL choose_bytes(const uint8_t *mask, const uint8_t *a, const uint8_t *b, const cu_walk &walk, uint8_t *y, long n) {
  CU_LOOP(i, n) {
    long at[CU_WALKED] = {};
    walk.find(i, at);
    y[i] = mask[at[MASK]] ? a[at[A]] : b[at[B]];
  }
}

static void forward(const mn_call *c, Formula f) {
  const Call x = call_of(c, f);
  const Axes axes = axes_of(c, f);
  if (c->out[0].dtype == MN_U8) {
    CU_LAUNCH(choose_bytes, cu_blocks(c->out[0].n), CU_THREADS, 0, x.mask, c->in[1].u8, c->in[2].u8, walk_of(axes, 1), c->out[0].u8,
              c->out[0].n);
    return;
  }
  float *y = c->out[0].data;
  const long n = c->out[0].n;
  if (axes.size[0] % 4 == 0 && cu_quads(4, axes.moves.a ? x.a : NULL, axes.moves.b ? x.b : NULL, y))
    CU_LAUNCH(binary_value<float4>, cu_blocks(n, 4), CU_THREADS, 0, x, walk_of(axes, 4), axes.moves,
              (float4 *)y, n / 4);
  else
    CU_LAUNCH(binary_value<float>, cu_blocks(n), CU_THREADS, 0, x, walk_of(axes, 1), axes.moves, y, n);
}

static void backward(const mn_call *c, Formula f, int needs) {
  Call x = call_of(c, f);
  const Axes axes = axes_of(c, f);
  const int first = f == where_formula ? 1 : 0;             /* input that is operand a */
  const long n = c->out[0].n;
  float *grad[2], *whole[2];
  for (int k = 0; k < 2; k++) {
    grad[k] = c->in[first + k].grad;
    whole[k] = c->in[first + k].n == n ? grad[k] : NULL;
  }
  x.dy = c->out[0].grad;
  if (!(needs & READS_A)) x.a = NULL;
  if (!(needs & READS_B)) x.b = NULL;
  if (needs & READS_Y) x.y = c->out[0].data;
  if (whole[0] || whole[1]) {
    if (axes.size[0] % 4 == 0 && cu_quads(4, axes.moves.a ? x.a : NULL, axes.moves.b ? x.b : NULL, x.y, x.dy) &&
        cu_quads(4, whole[0], whole[1]))
      CU_LAUNCH(binary_slopes<float4>, cu_blocks(n, 4), CU_THREADS, 0, x, walk_of(axes, 4), axes.moves,
                (float4 *)whole[0], (float4 *)whole[1], n / 4);
    else
      CU_LAUNCH(binary_slopes<float>, cu_blocks(n), CU_THREADS, 0, x, walk_of(axes, 1), axes.moves, whole[0],
                whole[1], n);
  }
  for (int k = 0; k < 2; k++)
    if (grad[k] && !whole[k]) cu_sum(c, fold_of(axes, k), Slope{ x, k == 1 }, grad[k]);
}

#define EXPORT(op, value, needs, to_a, to_b) \
  static void op##_forward(mn_call *c) { forward(c, op##_formula); } \
  static void op##_backward(mn_call *c) { backward(c, op##_formula, needs); } \
  MN_KERNEL(op, op##_forward, op##_backward)
BINARY_OPS(EXPORT)

/* ---- comparisons ---- */

template <class T> static __device__ bool holds(Formula f, T a, T b) {
  switch (f) {
#define HOLDS(op, where) case op##_formula: return where;
  COMPARISONS(HOLDS)
  default: return false;
  }
}

template <class T> CU_KERNEL compared(Formula f, const T *a, const T *b, const cu_walk &walk, uint8_t *mask, long n) {
  CU_LOOP(i, n) {
    long at[CU_WALKED] = {};
    walk.find(i, at);
    mask[i] = holds(f, a[at[A]], b[at[B]]);
  }
}

static void compare(const mn_call *c, Formula f) {
  const cu_walk walk = walk_of(axes_of(c, f), 1);
  const long n = c->out[0].n;
  uint8_t *mask = c->out[0].u8;
  const mn_arg *a = &c->in[0], *b = &c->in[1];
  if (a->dtype == MN_F32) CU_LAUNCH(compared<float>, cu_blocks(n), CU_THREADS, 0, f, a->data, b->data, walk, mask, n);
  else if (a->dtype == MN_I32) CU_LAUNCH(compared<int32_t>, cu_blocks(n), CU_THREADS, 0, f, a->i32, b->i32, walk, mask, n);
  else CU_LAUNCH(compared<uint8_t>, cu_blocks(n), CU_THREADS, 0, f, a->u8, b->u8, walk, mask, n);
}

#define EXPORT_COMPARISON(op, where) \
  static void op##_forward(mn_call *c) { compare(c, op##_formula); } \
  MN_KERNEL(op, op##_forward, NULL)
COMPARISONS(EXPORT_COMPARISON)
