/* max_pool2d.c -- the largest of each window of an image [Y,X,C].
** The first of equals wins, as in torch, and a NaN wins over any number.  The winner's place in its window is saved in a
** byte, for backward. */
#include <string.h>
#include "numerics/simd.h"
#include "op.h"

enum { KERNEL, STRIDE, PADDING, CEIL, MOST = 15 };   /* 15 x 15 places have a number in a byte */

/* The sizes of one call. */
typedef struct pool { int Y, X, C, out_y, out_x, kernel, stride, padding; } pool;

static pool open_call(const mn_call *c) {
  const mn_arg *y = &c->out[0];
  return (pool){ DIM(c, 'Y'), DIM(c, 'X'), DIM(c, 'C'), y->shape[2], y->shape[3], (int)OPT(c, KERNEL),
                 (int)(OPT(c, STRIDE) > 0 ? OPT(c, STRIDE) : OPT(c, KERNEL)), (int)OPT(c, PADDING) };
}

/* How many windows lie along n pixels; the last may hang over where asked, but begins inside. */
static int windows(const pool *p, int n, bool hangs_over) {
  int room = n + 2 * p->padding - p->kernel;
  if (room < 0) return 0;
  int count = (room + (hangs_over ? p->stride - 1 : 0)) / p->stride + 1;
  return (count - 1) * p->stride >= n + p->padding ? count - 1 : count;
}

static int shape(mn_call *c) {
  static const char *const name[] = { "kernel", "stride", "padding" };
  for (int i = 0; i < 3; i++) {
    double v = OPT(c, i);
    if (!(v >= (i == KERNEL) && v <= MOST) || v != (int)v)
      return mn_fail(c->ctx, "max_pool2d: %s is %g, expected a whole number from %d to %d", name[i], v, i == KERNEL, MOST);
  }
  pool p = open_call(c);
  if (2 * p.padding > p.kernel)
    return mn_fail(c->ctx, "max_pool2d: padding is %d, expected at most half of the kernel, %d", p.padding, p.kernel);
  for (int axis = 2; axis < 4; axis++) {
    int size = c->in[0].shape[axis], n = windows(&p, size, OPT(c, CEIL) > 0);
    if (n < 1)
      return mn_fail(c->ctx, "max_pool2d: kernel is %d, but axis %d of x has %d pixels, padding included", p.kernel, axis,
                     size + 2 * p.padding);
    c->out[0].shape[axis] = c->out[1].shape[axis] = n;
  }
  return 0;
}

/* What of a window lies inside, along one axis: places from .. end-1 of its kernel, which begins at pixel `start`. */
typedef struct span { int start, from, end; } span;

static span inside(const pool *p, int window, int n) {
  span s = { .start = window * p->stride - p->padding, .from = 0, .end = p->kernel };
  if (s.start < 0) s.from = -s.start;
  if (s.start + p->kernel > n) s.end = n - s.start;
  return s;
}

typedef int places __attribute__((vector_size(4 * MN_LANES)));
typedef uint8_t bytes __attribute__((vector_size(MN_LANES)));

/* One window of a vector's width of channels, of which n count. */
static void lanes_forward(const pool *p, const float *x, span down, span across, long n, float *y, uint8_t *at) {
  mn_lanes best = mn_splat(0);
  places place = { 0 };
  for (int ky = down.from; ky < down.end; ky++)
    for (int kx = across.from; kx < across.end; kx++) {
      mn_lanes v = mn_load_n(x + ((long)ky * p->X + kx) * p->C, n);
      places here = ky * p->kernel + kx - (places){ 0 };
      bool first = ky == down.from && kx == across.from;
      places wins = first ? ~(places){ 0 } : ~(v <= best) & (best == best);
      best = (mn_lanes)(((places)v & wins) | ((places)best & ~wins));
      place = (here & wins) | (place & ~wins);
    }
  bytes small = __builtin_convertvector(place, bytes);
  mn_store_n(y, best, n);
  memcpy(at, &small, n < MN_LANES ? (size_t)n : MN_LANES);
}

static void window_forward(const pool *p, const float *x, span down, span across, float *y, uint8_t *at) {
  const float *corner = x + (down.start * (long)p->X + across.start) * p->C;
  for (int i = 0; i < p->C; i += MN_LANES) lanes_forward(p, corner + i, down, across, p->C - i, y + i, at + i);
}

static void image_forward(const mn_call *c, const pool *p, long image) {
  const float *x = c->in[0].data + image * p->Y * p->X * p->C;
  long to = image * p->out_y * p->out_x * p->C;
  for (int y = 0; y < p->out_y; y++)
    for (int i = 0; i < p->out_x; i++, to += p->C)
      window_forward(p, x, inside(p, y, p->Y), inside(p, i, p->X), c->out[0].data + to, c->out[1].u8 + to);
}

static void image_backward(const mn_call *c, const pool *p, long image) {
  float *dx = c->in[0].grad + image * p->Y * p->X * p->C;
  memset(dx, 0, sizeof(float) * (size_t)p->Y * (size_t)p->X * (size_t)p->C);
  long from = image * p->out_y * p->out_x * p->C;
  for (int y = 0; y < p->out_y; y++)
    for (int x = 0; x < p->out_x; x++, from += p->C) {
      const float *dy = c->out[0].grad + from;
      const uint8_t *at = c->out[1].u8 + from;
      long corner = (y * p->stride - p->padding) * (long)p->X + x * p->stride - p->padding;
      for (int i = 0; i < p->C; i++) dx[(corner + at[i] / p->kernel * p->X + at[i] % p->kernel) * p->C + i] += dy[i];
    }
}

static void forward(mn_call *c) {
  pool p = open_call(c);
  double work = (double)c->out[0].n * p.kernel * p.kernel;
  MN_FOR(c->ctx, work, image, 0, (long)c->in[0].shape[0] * c->in[0].shape[1], 1, image_forward(c, &p, image));
}

static void backward(mn_call *c) {
  pool p = open_call(c);
  MN_FOR(c->ctx, (double)c->in[0].n, image, 0, (long)c->in[0].shape[0] * c->in[0].shape[1], 1, image_backward(c, &p, image));
}

const mn_op mn_op_max_pool2d = {
  .sig = "x[T,B,Y,X,C] -> y[T,B,?,?,C] ~at[T,B,?,?,C]:u8 | kernel=2 stride=0 padding=0 ceil=0",
  .doc = "y = the largest x of each window; stride=0: the kernel's; torch.nn.MaxPool2d over pixels [Y,X,C]",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
