/* head_conv.cu -- kernels of head_conv: one centred filter per head along a sequence.  A sequence is a row of N*D values,
** a step of time is D values, and values beyond the ends are zero. */
#include "runtime/kernel.cuh"

namespace {

struct Conv {
  const float *x, *w, *dy;
  float *y, *dx, *dw;
  int B, H, J;
  long D, row;                   /* row: N*D */
};

/* to_t = sum over j of w_j x_(t + sign (j - J/2)); sign -1 is the transpose. */
CU_KERNEL convolve(const Conv &a, const float *x, float *to, int sign, cu_divisor row) {
  CU_LOOP(i, (long)a.B * a.H * a.row) {
    long at;
    const long bh = row.divide(i, &at);
    const float *w = a.w + bh % a.H * a.J;
    float sum = 0;
    for (int j = 0; j < a.J; j++) {
      const long from = at + sign * (j - a.J / 2) * a.D;
      if (from >= 0 && from < a.row) sum = fmaf(w[j], x[i - at + from], sum);
    }
    to[i] = sum;
  }
}

/* A block makes one weight's gradient: dw_j = sum over t of dy_t . x_(t + j - J/2), over all environments. */
CU_KERNEL filter_back(const Conv &a) {
  const int h = (int)blockIdx.x / a.J, j = (int)blockIdx.x % a.J, tid = (int)threadIdx.x;
  const long shift = (j - a.J / 2) * a.D, from = cu_max(-shift, 0L), end = cu_min(a.row, a.row - shift);
  cu_smem<float> part = CU_SHARED(float, 0);
  float sum = 0;
  for (int b = 0; b < a.B; b++) {
    const long at = ((long)b * a.H + h) * a.row;
    for (long i = from + tid; i < end; i += CU_THREADS) sum = fmaf(a.dy[at + i], a.x[at + i + shift], sum);
  }
  sum = cu_warp_sum(sum);
  if (tid % 32 == 0) part[tid / 32] = sum;
  __syncthreads();
  if (tid) return;
  for (int w = 1; w < CU_THREADS / 32; w++) sum += part[w];
  a.dw[blockIdx.x] = sum;
}

static Conv open_call(const mn_call *c) {
  Conv a = {};
  a.x = c->in[0].data, a.w = c->in[1].data, a.y = c->out[0].data;
  a.dy = c->out[0].grad, a.dx = c->in[0].grad, a.dw = c->in[1].grad;
  a.B = DIM(c, 'B'), a.H = DIM(c, 'H'), a.J = DIM(c, 'J'), a.D = DIM(c, 'D'), a.row = (long)DIM(c, 'N') * a.D;
  return a;
}

static void forward(mn_call *c) {
  const Conv a = open_call(c);
  CU_LAUNCH(convolve, cu_blocks(c->in[0].n), CU_THREADS, 0, a, a.x, a.y, 1, cu_divisor(a.row));
}

static void backward(mn_call *c) {
  const Conv a = open_call(c);
  if (a.dx) CU_LAUNCH(convolve, cu_blocks(c->in[0].n), CU_THREADS, 0, a, a.dy, a.dx, -1, cu_divisor(a.row));
  if (a.dw) CU_LAUNCH(filter_back, a.H * a.J, CU_THREADS, 4 * CU_THREADS / 32, a);
}

}  // namespace

MN_KERNEL(head_conv, forward, backward)
