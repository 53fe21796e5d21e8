/* wkv7.c -- RWKV-7's memory: a matrix that decays, and removes what it holds along a direction before writing.
**   S_t = diag(keep_t) S_{t-1} - back_t (out_t^T S_{t-1}) + k_t v_t^T        y_t = r_t^T S_t
** Peng et al. 2025, eq. 16-17, with S transposed: keys by values.  A generalised delta rule: where keep = 1 and
** back = out = k it is Widrow and Hoff's.
** Sixteen steps at a time.  With u_t = -out_t^T S_{t-1} every step writes two keys, k_t with value v_t and back_t with
** value u_t, into a matrix that only decays; and u is found by forward substitution, as u_t needs u_s of s < t alone.
** Everything else is matrix products, with running products of decays as in wkv6. */
#include <string.h>
#include "numerics/simd.h"
#include "recurrent/wkv.h"

enum { R_IN, KEEP_IN, K_IN, V_IN, OUT, BACK, DONE, STATE };
enum { L = MN_CHUNK, PAIR = 2 * L };

typedef struct tokens {          /* sixteen steps of one head, and what both passes make of them; w: keep; o: minus `out` */
  float *r, *w, *k, *b, *o;
  float *v, *u;                  /* the two values that each step writes; this and the next two are [32,..] as a pair */
  float *rp, *op;                /* P_t r_t and P_{t-1} o_t: what reads the old matrix */
  float *run, *run_b;            /* k_s w_{s+1} ... w_15, and so for b */
  float *P;                      /* P_t = w_0 ... w_t */
  float *read, *take;            /* [16,32]: what y_t and what u_t take of v_s and of u_s */
} tokens;

static mn_wkv_keys keys_of(const mn_wkv *a, const tokens *x, const float *key) {
  return (mn_wkv_keys){ .n = a->Kp, .decay = x->w, .key = key, .early = x->o, .late = x->r };
}

/* u_t += sum over s < t of take[t][16+s] u_s, from the first step on. */
static void substitute(int Vp, const float *take, float *u) {
  for (int j = 0; j < Vp; j += MN_LANES) {
    mn_lanes x[L];
#pragma GCC unroll 16
    for (int t = 0; t < L; t++) {
      x[t] = mn_load(u + t * Vp + j);
#pragma GCC unroll 16
      for (int s = 0; s < t; s++) x[t] += x[s] * take[t * PAIR + L + s];
      mn_store(u + t * Vp + j, x[t]);
    }
  }
}

/* The same backward: du_s += sum over t > s of take[t][16+s] du_t, from the last step on. */
static void substitute_back(int Vp, const float *take, float *du) {
  for (int j = 0; j < Vp; j += MN_LANES) {
    mn_lanes x[L];
#pragma GCC unroll 16
    for (int i = 0; i < L; i++) {
      const int s = L - 1 - i;
      x[s] = mn_load(du + s * Vp + j);
#pragma GCC unroll 16
      for (int t = L - 1; t > s; t--) x[s] += x[t] * take[t * PAIR + L + s];
      mn_store(du + s * Vp + j, x[s]);
    }
  }
}

static tokens read_tokens(const mn_wkv *a, int bh, int t, int n, const float *S, mn_prefetch *q, float **work) {
  int Kp = a->Kp, Vp = a->Vp;
  long kn = (long)L * Kp, vn = (long)L * Vp;
  tokens x;                      /* cut in the order that the pairs ask for */
  float **const keys[] = { &x.r, &x.w, &x.k, &x.b, &x.o, &x.rp, &x.op, &x.run, &x.run_b, &x.P };
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) *keys[i] = mn_alloc_from(work, kn);
  x.v = mn_alloc_from(work, vn);
  x.u = mn_alloc_from(work, vn);
  x.read = mn_alloc_from(work, L * PAIR);
  x.take = mn_alloc_from(work, L * PAIR);
  mn_wkv_load(a, R_IN, bh, t, n, 0, x.r);
  mn_wkv_load(a, KEEP_IN, bh, t, n, 1, x.w);
  mn_wkv_load(a, K_IN, bh, t, n, 0, x.k);
  mn_wkv_load(a, BACK, bh, t, n, 0, x.b);
  mn_wkv_load(a, OUT, bh, t, n, 0, x.o);
  mn_wkv_load(a, V_IN, bh, t, n, 0, x.v);
  for (long i = 0; i < kn; i++) x.o[i] = -x.o[i];
  mn_wkv_prefix(Kp, x.w, x.o, x.r, x.P, x.op, x.rp);
  mn_prefetch_some(q);
  mn_wkv_keys by_k = keys_of(a, &x, x.k), by_b = keys_of(a, &x, x.b);
  mn_wkv_scores(&by_k, x.run, x.take, x.read);
  mn_prefetch_some(q);
  mn_wkv_scores(&by_b, x.run_b, x.take + L, x.read + L);
  mn_prefetch_some(q);
  mn_prefetch_gemm(q, L, Vp, L, x.take, PAIR, 1, x.v, NULL, NULL, x.u);
  mn_prefetch_gemm(q, L, Vp, Kp, x.op, Kp, 1, S, x.u, NULL, x.u);
  substitute(Vp, x.take, x.u);
  return x;
}

static void piece(const mn_wkv *a, int bh, int t, int n, const float *S, float *to, float *work) {
  int Kp = a->Kp, Vp = a->Vp, rows = (n + 7) / 8 * 8;
  mn_prefetch q;
  mn_wkv_prefetch(a, bh, t, &q);
  tokens x = read_tokens(a, bh, t, n, S, &q, &work);
  float *y = mn_alloc_from(&work, (long)L * Vp);
  mn_prefetch_gemm(&q, rows, Vp, PAIR, x.read, PAIR, 1, x.v, NULL, NULL, y);
  mn_prefetch_gemm(&q, rows, Vp, Kp, x.rp, Kp, 1, S, y, NULL, y);
  mn_wkv_write_y(a, bh, t, n, y);
  mn_wkv_update(a, &q, PAIR, x.P + (L - 1) * Kp, x.run, x.v, S, to);
  mn_prefetch_rest(&q);
}

/* N vectors of columns of S through one step. */
MN_INLINE void step_columns(const int N, const mn_wkv *a, const float *r, const float *w, const float *k, const float *out,
                            const float *back, const float *v, int left, float *S, float *y) {
  mn_lanes sum[4], vs[4], u[4];
#pragma GCC unroll 4
  for (int j = 0; j < N; j++) {
    vs[j] = mn_load_n(v + j * MN_LANES, left - j * MN_LANES);
    sum[j] = u[j] = mn_splat(0);
  }
  for (int i = 0; i < a->K; i++)
#pragma GCC unroll 4
    for (int j = 0; j < N; j++) u[j] -= mn_load_n(S + (long)i * a->V + j * MN_LANES, left - j * MN_LANES) * out[i];
  for (int i = 0; i < a->K; i++, S += a->V) {
#pragma GCC unroll 4
    for (int j = 0; j < N; j++) {
      mn_lanes s = mn_load_n(S + j * MN_LANES, left - j * MN_LANES) * w[i] + u[j] * back[i] + vs[j] * k[i];
      sum[j] += s * r[i];
      mn_store_n(S + j * MN_LANES, s, left - j * MN_LANES);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < N; j++) mn_store_n(y + j * MN_LANES, sum[j], left - j * MN_LANES);
}

static void step(const mn_wkv *a, int bh, int t, float *S, float *work) {
  (void)work;
  const float *r = mn_wkv_at(a, R_IN, bh, t, a->K), *w = mn_wkv_at(a, KEEP_IN, bh, t, a->K);
  const float *k = mn_wkv_at(a, K_IN, bh, t, a->K), *v = mn_wkv_at(a, V_IN, bh, t, a->V);
  const float *out = mn_wkv_at(a, OUT, bh, t, a->K), *back = mn_wkv_at(a, BACK, bh, t, a->K);
  float *y = a->c->out[0].data + (v - a->c->in[V_IN].data);
  int j = 0;
  for (; j + 4 * MN_LANES <= a->V; j += 4 * MN_LANES)
    step_columns(4, a, r, w, k, out, back, v + j, 4 * MN_LANES, S + j, y + j);
  for (; j < a->V; j += MN_LANES) step_columns(1, a, r, w, k, out, back, v + j, a->V - j, S + j, y + j);
}

static void piece_back(const mn_wkv *a, int bh, int t, int n, const float *S, float *dS, float *work) {
  int Kp = a->Kp, Vp = a->Vp;
  long kn = (long)L * Kp, vn = (long)L * Vp;
  mn_prefetch q;
  mn_wkv_prefetch(a, bh, t, &q);
  tokens x = read_tokens(a, bh, t, n, S, &q, &work);
  float *dv = mn_alloc_from(&work, vn), *dy = mn_alloc_from(&work, vn), *du = mn_alloc_from(&work, vn);     /* [dy; du] as one */
  float *dr = mn_alloc_from(&work, kn), *dout = mn_alloc_from(&work, kn), *dk = mn_alloc_from(&work, kn), *db = mn_alloc_from(&work, kn);
  float *dw = mn_alloc_from(&work, kn), *kept = mn_alloc_from(&work, Kp), *scores = mn_alloc_from(&work, 2 * L * PAIR);
  float *dread = scores, *dtake = scores + L * PAIR;
  mn_wkv_read_dy(a, bh, t, n, dy);

  /* The values: what y and the new matrix take of them, then what u takes of them. */
  mn_prefetch_gemm(&q, L, Vp, Kp, x.run, Kp, 1, dS, NULL, NULL, dv);
  mn_prefetch_gemm(&q, L, Vp, Kp, x.run_b, Kp, 1, dS, NULL, NULL, du);
  mn_prefetch_gemm(&q, L, Vp, L, x.read + L, 1, PAIR, dy, du, NULL, du);
  substitute_back(Vp, x.take, du);
  float both[PAIR * L];          /* read and take of v, one below the other */
  for (int i = 0; i < L; i++) {
    memcpy(both + i * L, x.read + i * PAIR, sizeof(float) * L);
    memcpy(both + (L + i) * L, x.take + i * PAIR, sizeof(float) * L);
  }
  mn_prefetch_gemm(&q, L, Vp, PAIR, both, 1, L, dy, dv, NULL, dv);
  mn_wkv_store(a, V_IN, bh, t, n, dv);

  /* The scores; what read the old matrix, and what was written to the new one. */
  mn_prefetch_dots(&q, PAIR, PAIR, Vp, dy, x.v, scores);
  mn_prefetch_dots(&q, PAIR, Kp, Vp, dy, S, dr);
  mn_prefetch_dots(&q, PAIR, Kp, Vp, x.v, dS, dk);
  mn_wkv_kept_back(a, S, dS, kept);
  mn_wkv_update(a, &q, PAIR, x.P + kn - Kp, x.rp, dy, dS, dS);
  mn_prefetch_rest(&q);

  /* The end of P is what is kept of the state. */
  mn_wkv_prefix_back(Kp, x.w, x.P, x.o, x.r, kept, dout, dr, dw);
  mn_wkv_keys by_k = keys_of(a, &x, x.k), by_b = keys_of(a, &x, x.b);
  mn_wkv_keys_back(&by_k, dtake, dread, dk, dout, dr, dw);
  mn_wkv_keys_back(&by_b, dtake + L, dread + L, db, dout, dr, dw);
  for (long i = 0; i < kn; i++) dout[i] = -dout[i];
  mn_wkv_store(a, R_IN, bh, t, n, dr);
  mn_wkv_store(a, KEEP_IN, bh, t, n, dw);
  mn_wkv_store(a, K_IN, bh, t, n, dk);
  mn_wkv_store(a, OUT, bh, t, n, dout);
  mn_wkv_store(a, BACK, bh, t, n, db);
}

static const mn_wkv_op op = {
  .name = "wkv7", .rows = DONE, .done = DONE, .state = STATE, .key_rows = 16, .value_rows = 6,
  .piece = piece, .step = step, .piece_back = piece_back,
};

static int shape(mn_call *c) { return mn_wkv_shape(c, &op); }
static void forward(mn_call *c) { mn_wkv_forward(c, &op); }
static void backward(mn_call *c) { mn_wkv_backward(c, &op, -1); }

const mn_op mn_op_wkv7 = {
  .sig = "r[T,B,H,K] keep[T,B,H,K]:01 k[T,B,H,K] v[T,B,H,V] out[T,B,H,K] back[T,B,H,K] done?[T,B]:bit S?[B,H,K,V] -> "
         "y[T,B,H,V] S'[B,H,K,V] ~~saved[?,?]",
  .doc = "RWKV-7's matrix memory, a generalised delta rule: S = diag(keep) S - back (out^T S) + k v^T, y = r^T S "
         "(Peng et al. 2025, eq. 16-17, S transposed)",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
