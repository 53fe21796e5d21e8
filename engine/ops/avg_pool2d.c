/* avg_pool2d.c -- the mean of each window of an image [Y,X,C].  Padding counts as zeros, as in torch.nn.AvgPool2d. */
#include <string.h>
#include "pool.h"

enum { MOST = 1024 };

static int shape(mn_call *c) { return mn_pool_shape(c, MOST, false); }

static void image_forward(const mn_call *c, const pool *p, long image) {
  const float *x = c->in[0].data + image * p->Y * p->X * p->C, by = 1 / ((float)p->kernel * (float)p->kernel);
  float *y = c->out[0].data + image * p->out_y * p->out_x * p->C;
  for (int row = 0; row < p->out_y; row++)
    for (int col = 0; col < p->out_x; col++, y += p->C) {
      const span down = mn_pool_inside(p, row, p->Y), across = mn_pool_inside(p, col, p->X);
      memset(y, 0, sizeof(float) * (size_t)p->C);
      for (int ky = down.from; ky < down.end; ky++)
        for (int kx = across.from; kx < across.end; kx++) {
          const float *from = x + ((long)(down.start + ky) * p->X + across.start + kx) * p->C;
          for (int i = 0; i < p->C; i++) y[i] += from[i];
        }
      for (int i = 0; i < p->C; i++) y[i] *= by;
    }
}

static void image_backward(const mn_call *c, const pool *p, long image) {
  float *dx = c->in[0].grad + image * p->Y * p->X * p->C, by = 1 / ((float)p->kernel * (float)p->kernel);
  const float *dy = c->out[0].grad + image * p->out_y * p->out_x * p->C;
  memset(dx, 0, sizeof(float) * (size_t)p->Y * (size_t)p->X * (size_t)p->C);
  for (int row = 0; row < p->out_y; row++)
    for (int col = 0; col < p->out_x; col++, dy += p->C) {
      const span down = mn_pool_inside(p, row, p->Y), across = mn_pool_inside(p, col, p->X);
      for (int ky = down.from; ky < down.end; ky++)
        for (int kx = across.from; kx < across.end; kx++) {
          float *to = dx + ((long)(down.start + ky) * p->X + across.start + kx) * p->C;
          for (int i = 0; i < p->C; i++) to[i] += by * dy[i];
        }
    }
}

static double work(const mn_call *c, const pool *p) { return (double)c->out[0].n * p->kernel * p->kernel; }
static long images(const mn_call *c) { return (long)c->in[0].shape[0] * c->in[0].shape[1]; }

static void forward(mn_call *c) {
  pool p = mn_pool_of(c);
  MN_FOR(c->ctx, work(c, &p), image, 0, images(c), 1, image_forward(c, &p, image));
}

static void backward(mn_call *c) {
  pool p = mn_pool_of(c);
  MN_FOR(c->ctx, work(c, &p), image, 0, images(c), 1, image_backward(c, &p, image));
}

const mn_op mn_op_avg_pool2d = {
  .sig = "x[T,B,Y,X,C] -> y[T,B,?,?,C] | kernel=2 stride=0 padding=0",
  .doc = "y = the mean x of each window, padding included; stride=0: the kernel's; torch.nn.AvgPool2d over pixels [Y,X,C]",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
