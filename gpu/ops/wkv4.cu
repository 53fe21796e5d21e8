/* wkv4.cu -- RWKV-4's memory (engine/ops/wkv4.c): a thread carries one channel of one environment through time, its three
** values in registers.  Neighbouring threads have neighbouring channels.  Per step some 20 operations and two exponentials
** forward, 60 and four backward; 12 bytes forward and 20 backward.  Backward recomputes the sixteen states of a window. */
#include "lib/sums.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

enum { K_IN, V_IN, DECAY, FIRST, DONE, P_IN, Q_IN, O_IN };
enum { L = 16, WKV_THREADS = 64 };         /* steps between states kept; few threads: channels are not many */
#define FAR (-1e38f)

struct Channels {                /* BD = B*D channels, of which thread i has number i */
  const float *k, *v, *decay, *first;
  const uint8_t *done;
  const float *from[3];          /* p, q, o before row t0; NULL: nothing yet */
  float *state[3], *y, *kept;    /* kept: [windows,3,BD] */
  const float *dy, *dstate[3];
  float *dk, *dv, *dfrom[3], *dw, *du;     /* dw, du: sums over time, [BD] each, scratch */
  int B, D, T, t0, t1;
};

struct State { float p, q, o; };

/* e^(a - max) and e^(b - max) of two exponents. */
static __device__ __forceinline__ void weights(float a, float b, float *of_a, float *of_b) {
  const float e = mn_expf(-fabsf(a - b));
  *of_a = a >= b ? 1.0f : e;
  *of_b = a >= b ? e : 1.0f;
}

static __device__ __forceinline__ float rate_of(const Channels &x, int d) { return -mn_expf(mn_at_most(x.decay[d], 88)); }

static __device__ __forceinline__ bool resets(const Channels &x, int t, int b) { return x.done && x.done[(long)t * x.B + b]; }

static __device__ __forceinline__ float step(State &s, float w, float u, float k, float v) {
  float a, b;
  const float wo = w + s.o;
  weights(s.o, u + k, &a, &b);
  const float y = (a * s.p + b * v) / (a * s.q + b);
  weights(wo, k, &a, &b);
  s.p = a * s.p + b * v;
  s.q = a * s.q + b;
  s.o = wo >= k ? wo : k;
  return y;
}

/* d: gradient of the state after this step, becomes that before it; s: the state before. */
static __device__ __forceinline__ void step_back(const State &s, float w, float u, float k, float v, float dy, State &d,
                                                 float *dk, float *dv, float *dw, float *du) {
  const float wo = w + s.o;
  float a, b;
  weights(wo, k, &a, &b);
  const float da = (d.p * s.p + d.q * s.q) * a, db = (d.p * v + d.q) * b;      /* through the exponents */
  const float dwo = wo >= k ? d.o - db : da, to_k = wo >= k ? db : d.o - da, to_v = d.p * b;
  d.p *= a;
  d.q *= a;
  weights(s.o, u + k, &a, &b);
  const float den = a * s.q + b, y = (a * s.p + b * v) / den, g = dy / den, to_u = g * b * (v - y);
  d.p += g * a;
  d.q -= g * a * y;
  d.o = dwo + g * a * (s.p - y * s.q);
  *dw += dwo;
  *du += to_u;
  *dk = to_k + to_u;
  *dv = to_v + g * b;
}

static __device__ __forceinline__ State state_at(const float *p, const float *q, const float *o, long i) {
  return { p ? p[i] : 0.0f, q ? q[i] : 0.0f, o ? o[i] : FAR };
}

CU_KERNEL wkv_steps(const Channels &x) {
  const long BD = (long)x.B * x.D, i = (long)blockIdx.x * WKV_THREADS + threadIdx.x;
  if (i >= BD) return;
  const int b = (int)(i / x.D), d = (int)(i % x.D);
  const float w = rate_of(x, d), u = x.first[d];
  State s = state_at(x.from[0], x.from[1], x.from[2], i);
  for (int from = x.t0; from < x.t1; from = (from / L + 1) * L) {
    float k[L], v[L];
    const int n = cu_min(x.t1, (from / L + 1) * L) - from;
CU_UNROLL
    for (int m = 0; m < L; m++) {
      k[m] = m < n ? x.k[(from + m) * BD + i] : 0.0f;
      v[m] = m < n ? x.v[(from + m) * BD + i] : 0.0f;
    }
CU_UNROLL
    for (int m = 0; m < L; m++) {
      if (m >= n) break;
      const int t = from + m;
      if (resets(x, t, b)) s = { 0.0f, 0.0f, FAR };
      if (t % L == 0) {
        float *kept = x.kept + t / L * 3 * BD + i;
        kept[0] = s.p, kept[BD] = s.q, kept[2 * BD] = s.o;
      }
      x.y[t * BD + i] = step(s, w, u, k[m], v[m]);
    }
  }
  x.state[0][i] = s.p, x.state[1][i] = s.q, x.state[2][i] = s.o;
}

CU_KERNEL wkv_steps_back(const Channels &x) {
  const long BD = (long)x.B * x.D, i = (long)blockIdx.x * WKV_THREADS + threadIdx.x;
  if (i >= BD) return;
  const int b = (int)(i / x.D), d = (int)(i % x.D);
  const float w = rate_of(x, d), u = x.first[d];
  float dw = 0.0f, du = 0.0f;
  State to = { x.dstate[0] ? x.dstate[0][i] : 0.0f, x.dstate[1] ? x.dstate[1][i] : 0.0f,
               x.dstate[2] ? x.dstate[2][i] : 0.0f };
  for (int from = (x.T - 1) / L * L; from >= 0; from -= L) {
    const int n = cu_min((int)L, x.T - from);
    const float *kept = x.kept + from / L * 3 * BD;
    float k[L], v[L];
    State was[L], s = state_at(kept, kept + BD, kept + 2 * BD, i);
CU_UNROLL
    for (int m = 0; m < L; m++) {
      k[m] = m < n ? x.k[(from + m) * BD + i] : 0.0f;
      v[m] = m < n ? x.v[(from + m) * BD + i] : 0.0f;
    }
CU_UNROLL
    for (int m = 0; m < L; m++) {
      if (m > 0 && m < n && resets(x, from + m, b)) s = { 0.0f, 0.0f, FAR };
      was[m] = s;
      step(s, w, u, k[m], v[m]);
    }
CU_UNROLL
    for (int back = 0; back < L; back++) {
      const int m = L - 1 - back, t = from + m;
      if (m >= n) continue;
      float dk, dv;
      step_back(was[m], w, u, k[m], v[m], x.dy ? x.dy[t * BD + i] : 0.0f, to, &dk, &dv, &dw, &du);
      if (x.dk) x.dk[t * BD + i] = dk;
      if (x.dv) x.dv[t * BD + i] = dv;
      if (resets(x, t, b)) to = { 0.0f, 0.0f, 0.0f };
    }
  }
  if (x.dfrom[0]) x.dfrom[0][i] = to.p;
  if (x.dfrom[1]) x.dfrom[1][i] = to.q;
  if (x.dfrom[2]) x.dfrom[2][i] = to.o;
  x.dw[i] = -dw * mn_expf(mn_at_most(x.decay[d], 88));
  x.du[i] = du;
}

static Channels channels_of(const mn_call *c) {
  const mn_arg *in = c->in, *out = c->out;
  Channels x = {};
  x.k = in[K_IN].data, x.v = in[V_IN].data, x.decay = in[DECAY].data, x.first = in[FIRST].data, x.done = in[DONE].u8;
  x.y = out[0].data, x.kept = out[4].data, x.dy = out[0].grad, x.dk = in[K_IN].grad, x.dv = in[V_IN].grad;
  for (int m = 0; m < 3; m++) {
    x.state[m] = out[1 + m].data, x.dstate[m] = out[1 + m].grad, x.dfrom[m] = in[P_IN + m].grad;
    x.from[m] = c->t0 ? out[1 + m].data : in[P_IN + m].data;
  }
  x.B = DIM(c, 'B'), x.D = DIM(c, 'D'), x.T = DIM(c, 'T'), x.t0 = c->t0, x.t1 = c->t1;
  return x;
}

static void forward(mn_call *c) {
  const Channels x = channels_of(c);
  CU_LAUNCH(wkv_steps, (unsigned)cu_parts((long)x.B * x.D, WKV_THREADS), WKV_THREADS, 0, x);
}

static void backward(mn_call *c) {
  Channels x = channels_of(c);
  const long BD = (long)x.B * x.D;
  x.dw = mn_scratch(c->ctx, 0, 2 * BD);
  x.du = x.dw + BD;
  CU_LAUNCH(wkv_steps_back, (unsigned)cu_parts(BD, WKV_THREADS), WKV_THREADS, 0, x);
  const cu_fold copies = cu_fold_of(1, x.B, x.D);
  if (c->in[DECAY].grad) cu_sum(c, copies, cu_number{ x.dw }, c->in[DECAY].grad);
  if (c->in[FIRST].grad) cu_sum(c, copies, cu_number{ x.du }, c->in[FIRST].grad);
}

MN_KERNEL(wkv4, forward, backward)
