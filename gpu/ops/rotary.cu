/* rotary.cu -- kernels of rotary: rotate pairs of elements by an angle that grows with time.  A thread handles one pair: it
** computes the pair's frequency once, and rotates it in all heads of some rows with one sine and cosine per row. */
#include <math.h>
#include "runtime/strided_copy.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

namespace {

enum { PAIRS = 32, ROWS = 8 };   /* of a block */

struct Turn {
  const float *x, *tick;
  float *y, *tick_out;           /* tick_out: NULL going back */
  long from, end;                /* rows t*B + b */
  int B, H, D;
  double base;
  float sign;
};

CU_KERNEL turn(const Turn &a) {
  const int i = (int)(blockIdx.x * PAIRS + threadIdx.x);
  if (2 * i >= a.D) return;
  const double quarters = pow(a.base, -2.0 * i / a.D) / 1.5707963267948966;       /* turned in a step */
  for (long row = a.from + (long)blockIdx.y * ROWS + threadIdx.y; row < a.end; row += (long)gridDim.y * ROWS) {
    const int b = (int)(row % a.B);
    float sine, cosine;
    mn_sincos_quarters(((double)a.tick[b] + (double)(row / a.B)) * quarters, &sine, &cosine);
    sine *= a.sign;
    for (int h = 0; h < a.H; h++) {
      const long at = (row * a.H + h) * a.D + 2 * i;
      const float u = a.x[at], v = a.x[at + 1];
      a.y[at] = u * cosine - v * sine;
      a.y[at + 1] = u * sine + v * cosine;
    }
    if (a.tick_out && i == 0 && row < a.from + a.B) a.tick_out[b] = a.tick[b] + (float)(a.end / a.B);
  }
}

static void turn_rows(const mn_call *c, float sign, const float *x, float *y, float *tick_out) {
  const int B = DIM(c, 'B'), D = DIM(c, 'D');
  const Turn a = { x, c->in[1].data, y, tick_out, (long)c->t0 * B, (long)c->t1 * B, B, DIM(c, 'H'), D, OPT(c, 0), sign };
  const dim3 grid((unsigned)cu_parts(D / 2, PAIRS), (unsigned)cu_min(cu_parts(a.end - a.from, ROWS), 1024L));
  CU_LAUNCH(turn, grid, dim3(PAIRS, ROWS), 0, a);
}

static void forward(mn_call *c) { turn_rows(c, 1, c->in[0].data, c->out[0].data, c->out[1].data); }

static void backward(mn_call *c) {
  if (c->in[0].grad) turn_rows(c, -1, c->out[0].grad, c->in[0].grad, NULL);
  cu_zero_grad(&c->in[1]);
}

}  // namespace

MN_KERNEL(rotary, forward, backward)
