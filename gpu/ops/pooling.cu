/* pooling.cu -- kernels of max_pool2d and avg_pool2d: one thread per element.  In backward each pixel reads the windows
** that contain it and takes the gradients of those whose maximum it was, or its share of all, so no two threads add to one place. */
#include "runtime/kernel.cuh"

namespace {

enum { KERNEL, STRIDE, PADDING };

struct Pool {
  const float *x, *dy;
  float *y, *dx;
  uint8_t *at;                   /* place of its window that won */
  int Y, X, out_y, out_x, kernel, stride, padding;
  cu_divisor channels, across, down;                 /* of the numbers that the threads make: C, columns, rows */
  long C;
};

struct Place { long image, y, x, c; };

static __device__ __forceinline__ Place place_of(const Pool &p, long i) {
  Place a;
  a.image = p.down.divide(p.across.divide(p.channels.divide(i, &a.c), &a.x), &a.y);
  return a;
}

CU_KERNEL largest(const Pool &p, long n) {
  CU_LOOP(i, n) {
    const Place a = place_of(p, i);
    const int top = (int)a.y * p.stride - p.padding, left = (int)a.x * p.stride - p.padding;
    float best = 0;
    int place = -1;
    for (int ky = cu_max(0, -top); ky < p.kernel && top + ky < p.Y; ky++)
      for (int kx = cu_max(0, -left); kx < p.kernel && left + kx < p.X; kx++) {
        const float v = p.x[((a.image * p.Y + top + ky) * p.X + left + kx) * p.C + a.c];
        if (place >= 0 && (v <= best || best != best)) continue;       /* the first of equals, and NaN, stay */
        best = v, place = ky * p.kernel + kx;
      }
    p.y[i] = best;
    p.at[i] = (uint8_t)place;
  }
}

/* The first window along an axis that pixel i lies in. */
static __device__ __forceinline__ int first_window(const Pool &p, long i) {
  const int before = (int)i + p.padding - p.kernel + 1;
  return before > 0 ? (before + p.stride - 1) / p.stride : 0;
}

CU_KERNEL back(const Pool &p, long n) {
  CU_LOOP(i, n) {
    const Place a = place_of(p, i);
    const int y = (int)a.y + p.padding, x = (int)a.x + p.padding;
    float sum = 0;
    for (int oy = first_window(p, a.y); oy < p.out_y && oy * p.stride <= y; oy++)
      for (int ox = first_window(p, a.x); ox < p.out_x && ox * p.stride <= x; ox++) {
        const long from = ((a.image * p.out_y + oy) * p.out_x + ox) * p.C + a.c;
        if (p.at[from] == (y - oy * p.stride) * p.kernel + x - ox * p.stride) sum += p.dy[from];
      }
    p.dx[i] = sum;
  }
}

CU_KERNEL means(const Pool &p, float by, long n) {
  CU_LOOP(i, n) {
    const Place a = place_of(p, i);
    const int top = (int)a.y * p.stride - p.padding, left = (int)a.x * p.stride - p.padding;
    float sum = 0;
    for (int ky = cu_max(0, -top); ky < p.kernel && top + ky < p.Y; ky++)
      for (int kx = cu_max(0, -left); kx < p.kernel && left + kx < p.X; kx++)
        sum += p.x[((a.image * p.Y + top + ky) * p.X + left + kx) * p.C + a.c];
    p.y[i] = by * sum;
  }
}

CU_KERNEL means_back(const Pool &p, float by, long n) {
  CU_LOOP(i, n) {
    const Place a = place_of(p, i);
    const int y = (int)a.y + p.padding, x = (int)a.x + p.padding;
    float sum = 0;
    for (int oy = first_window(p, a.y); oy < p.out_y && oy * p.stride <= y; oy++)
      for (int ox = first_window(p, a.x); ox < p.out_x && ox * p.stride <= x; ox++)
        sum += p.dy[((a.image * p.out_y + oy) * p.out_x + ox) * p.C + a.c];
    p.dx[i] = by * sum;
  }
}

static Pool open_call(const mn_call *c) {
  Pool p = {};
  const mn_arg *y = &c->out[0];
  p.x = c->in[0].data, p.dx = c->in[0].grad, p.y = y->data, p.dy = y->grad, p.at = c->n_out > 1 ? c->out[1].u8 : NULL;
  p.Y = DIM(c, 'Y'), p.X = DIM(c, 'X'), p.C = DIM(c, 'C'), p.out_y = y->shape[2], p.out_x = y->shape[3];
  p.kernel = (int)OPT(c, KERNEL), p.padding = (int)OPT(c, PADDING);
  p.stride = OPT(c, STRIDE) > 0 ? (int)OPT(c, STRIDE) : p.kernel;
  p.channels = cu_divisor(p.C);
  return p;
}

static Pool over_windows(const mn_call *c) {
  Pool p = open_call(c);
  p.across = cu_divisor(p.out_x), p.down = cu_divisor(p.out_y);
  return p;
}

static Pool over_pixels(const mn_call *c) {
  Pool p = open_call(c);
  p.across = cu_divisor(p.X), p.down = cu_divisor(p.Y);
  return p;
}

static void max_forward(mn_call *c) {
  CU_LAUNCH(largest, cu_blocks(c->out[0].n), CU_THREADS, 0, over_windows(c), c->out[0].n);
}

static void max_backward(mn_call *c) {
  if (c->in[0].grad) CU_LAUNCH(back, cu_blocks(c->in[0].n), CU_THREADS, 0, over_pixels(c), c->in[0].n);
}

static float share(const mn_call *c) { return 1 / ((float)OPT(c, KERNEL) * (float)OPT(c, KERNEL)); }

static void avg_forward(mn_call *c) {
  CU_LAUNCH(means, cu_blocks(c->out[0].n), CU_THREADS, 0, over_windows(c), share(c), c->out[0].n);
}

static void avg_backward(mn_call *c) {
  if (c->in[0].grad) CU_LAUNCH(means_back, cu_blocks(c->in[0].n), CU_THREADS, 0, over_pixels(c), share(c), c->in[0].n);
}

}  // namespace

MN_KERNEL(max_pool2d, max_forward, max_backward)
MN_KERNEL(avg_pool2d, avg_forward, avg_backward)
