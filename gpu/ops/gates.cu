/* gates.cu -- kernels of slstm_gate and minlstm_gate: a thread takes one channel of one row (numerics/gates.h). */
#include "runtime/kernel.cuh"
extern "C" {
#include "numerics/gates.h"
}

namespace {

struct Slstm {                   /* rows of D channels; x, r and their gradients of 4 D */
  const float *x, *r, *c, *n, *m, *gy, *gc, *gn, *gm;
  float *y, *c2, *n2, *m2, *dx, *dr, *dc, *dn, *dm;
  cu_divisor D;
  long size;

  __device__ __forceinline__ mn_slstm read(long i, long first) const {
    const long by = D.by;
    return { x[first] + r[first], x[first + by] + r[first + by], x[first + 2 * by] + r[first + 2 * by], x[first + 3 * by] + r[first + 3 * by],
             c[i], n[i], m[i] };
  }
  __device__ __forceinline__ long first(long i) const {
    long d;
    const long row = D.divide(i, &d);
    return row * 4 * D.by + d;
  }
};

}  // namespace

CU_KERNEL slstm_step(const Slstm &a) {
  CU_LOOP(i, a.size) {
    const mn_slstm_next next = mn_slstm_step(a.read(i, a.first(i)));
    a.y[i] = next.y, a.c2[i] = next.c, a.n2[i] = next.n, a.m2[i] = next.m;
  }
}

CU_KERNEL slstm_back(const Slstm &a) {
  CU_LOOP(i, a.size) {
    const long first = a.first(i), by = a.D.by;
    const mn_slstm_next g = { a.gy ? a.gy[i] : 0.0f, a.gc ? a.gc[i] : 0.0f, a.gn ? a.gn[i] : 0.0f, a.gm ? a.gm[i] : 0.0f };
    const mn_slstm d = mn_slstm_back(a.read(i, first), a.y[i], a.c2[i], a.n2[i], g);
    if (a.dx) a.dx[first] = d.i, a.dx[first + by] = d.f, a.dx[first + 2 * by] = d.z, a.dx[first + 3 * by] = d.o;
    if (a.dr) a.dr[first] = d.i, a.dr[first + by] = d.f, a.dr[first + 2 * by] = d.z, a.dr[first + 3 * by] = d.o;
    if (a.dc) a.dc[i] = d.c;
    if (a.dn) a.dn[i] = d.n;
    if (a.dm) a.dm[i] = d.m;
  }
}

static Slstm slstm_of(const mn_call *c) {
  const mn_arg *in = c->in, *out = c->out;
  Slstm a = {};
  a.x = in[0].data, a.r = in[1].data, a.c = in[2].data, a.n = in[3].data, a.m = in[4].data;
  a.dx = in[0].grad, a.dr = in[1].grad, a.dc = in[2].grad, a.dn = in[3].grad, a.dm = in[4].grad;
  a.y = out[0].data, a.c2 = out[1].data, a.n2 = out[2].data, a.m2 = out[3].data;
  a.gy = out[0].grad, a.gc = out[1].grad, a.gn = out[2].grad, a.gm = out[3].grad;
  a.D = cu_divisor(DIM(c, 'D')), a.size = in[2].n;
  return a;
}

static void slstm_forward(mn_call *c) { CU_LAUNCH(slstm_step, cu_blocks(c->in[2].n), CU_THREADS, 0, slstm_of(c)); }
static void slstm_backward(mn_call *c) { CU_LAUNCH(slstm_back, cu_blocks(c->in[2].n), CU_THREADS, 0, slstm_of(c)); }

MN_KERNEL(slstm_gate, slstm_forward, slstm_backward)

CU_KERNEL minlstm_step(const float *f, const float *i, const float *v, float *x, float *keep, long n) {
  CU_LOOP(k, n) mn_minlstm_step(f[k], i[k], v[k], &x[k], &keep[k]);
}

CU_KERNEL minlstm_back(const float *f, const float *i, const float *v, const float *dx, const float *dkeep, float *df, float *di, float *dv,
                       long n) {
  CU_LOOP(k, n) {
    float of_f, of_i, of_v;
    mn_minlstm_back(f[k], i[k], v[k], dx ? dx[k] : 0.0f, dkeep ? dkeep[k] : 0.0f, &of_f, &of_i, &of_v);
    if (df) df[k] = of_f;
    if (di) di[k] = of_i;
    if (dv) dv[k] = of_v;
  }
}

static void minlstm_forward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(minlstm_step, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].data, c->in[2].data, c->out[0].data, c->out[1].data, n);
}

static void minlstm_backward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(minlstm_back, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].data, c->in[2].data, c->out[0].grad, c->out[1].grad,
            c->in[0].grad, c->in[1].grad, c->in[2].grad, n);
}

MN_KERNEL(minlstm_gate, minlstm_forward, minlstm_backward)
