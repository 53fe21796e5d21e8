/* max_pool2d.c -- the largest of each window of an image [Y,X,C].
** The first of equals wins, as in torch, and a NaN wins over any number.  The winner's place in its window is saved in a
** byte, for backward. */
#include <string.h>
#include "numerics/simd.h"
#include "pool.h"

enum { CEIL = 3, MOST = 15 };    /* an option; 15 x 15 places have a number in a byte */

static int shape(mn_call *c) { return mn_pool_shape(c, MOST, OPT(c, CEIL) > 0); }

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
      window_forward(p, x, mn_pool_inside(p, y, p->Y), mn_pool_inside(p, i, p->X), c->out[0].data + to, c->out[1].u8 + to);
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
  pool p = mn_pool_of(c);
  double work = (double)c->out[0].n * p.kernel * p.kernel;
  MN_FOR(c->ctx, work, image, 0, (long)c->in[0].shape[0] * c->in[0].shape[1], 1, image_forward(c, &p, image));
}

static void backward(mn_call *c) {
  pool p = mn_pool_of(c);
  MN_FOR(c->ctx, (double)c->in[0].n, image, 0, (long)c->in[0].shape[0] * c->in[0].shape[1], 1, image_backward(c, &p, image));
}

const mn_op mn_op_max_pool2d = {
  .sig = "x[T,B,Y,X,C] -> y[T,B,?,?,C] ~~at[T,B,?,?,C]:u8 | kernel=2 stride=0 padding=0 ceil=0",
  .doc = "y = the largest x of each window; stride=0: the kernel's; torch.nn.MaxPool2d over pixels [Y,X,C]",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
