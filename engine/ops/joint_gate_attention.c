/* joint_gate_attention.c -- gated linear attention whose decay is 1 - b g^T: GaLiTe as released.
** That decay is not of rank one, so tokens cannot be gathered into matrix products.  What remains is to
** touch the state seldom: a few rows and columns of it stay in registers while sixteen tokens pass.
** With u = g where the state is kept (0 at a reset), one token is
**   F = v (g*k)^T - C * u      C' = keep C + b F */
#include <string.h>
#include "../matrix_memory.h"
#include "../simd.h"

enum { L = MN_CHUNK, R = 4 };    /* rows of the state in registers */

/* Values and gates, [16,Vp] each; rows n..15 write nothing. */
static void load_values(const mn_attention *a, int bh, int t, int n, float *v, float *b) {
  memset(v, 0, sizeof(float) * L * (size_t)a->Vp);
  memset(b, 0, sizeof(float) * L * (size_t)a->Vp);
  for (int i = 0; i < n; i++) {
    long at = mn_token(a, t + i, bh) * a->V;
    memcpy(v + i * a->Vp, a->c->in[IN_V].data + at, sizeof(float) * (size_t)a->V);
    memcpy(b + i * a->Vp, a->c->in[IN_BETA].data + at, sizeof(float) * (size_t)a->V);
  }
}

/* s of every token (after it), its sum with q, and decay turned into u = keep - decay. */
static void key_sums(const mn_attention *a, int n, const float *keep, const float *s, const float *q,
                     const float *write, float *decay, float *sums, float *z) {
  long Kp = a->Kp;
  for (int t = 0; t < n; t++, s = sums, sums += Kp, q += Kp, write += Kp, decay += Kp) {
    mn_lanes dot = { 0 };
    for (int j = 0; j < Kp; j += MN_LANES) {
      mn_lanes d = mn_load(decay + j), x = d * mn_load(s + j) + mn_load(write + j);
      mn_store(sums + j, x);
      mn_store(decay + j, keep[t] - d);
      dot += x * mn_load(q + j);
    }
    z[t] = mn_sum(dot);
  }
}

/* n tokens through R rows and N vectors of columns of C; part[t][row] gathers C q by lanes. */
MN_INLINE void pass(const int N, int n, int Kp, int Vp, const float *C, float *to, const float *keep,
                    const float *q, const float *write, const float *u, const float *v, const float *b,
                    mn_lanes (*part)[R]) {
  mn_lanes x[R][2];
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 2
    for (int j = 0; j < N; j++) x[r][j] = mn_load(C + r * Kp + j * MN_LANES);
  for (int t = 0; t < n; t++, q += Kp, write += Kp, u += Kp, v += Vp, b += Vp) {
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
      for (int j = 0; j < N; j++) {
        mn_lanes F = mn_load(write + j * MN_LANES) * v[r] - mn_load(u + j * MN_LANES) * x[r][j];
        x[r][j] = x[r][j] * keep[t] + F * b[r];
        part[t][r] += x[r][j] * mn_load(q + j * MN_LANES);
      }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 2
    for (int j = 0; j < N; j++) mn_store(to + r * Kp + j * MN_LANES, x[r][j]);
}

/* out[t][i0 .. i0+R-1] = the sums of part[t][0..R-1] over their lanes. */
static void gather(int Vp, mn_lanes (*part)[R], float *out) {
  float sums[L * R];
  mn_lanes *all = &part[0][0];
  for (int i = 0; i < L * R; i += MN_LANES) mn_store(sums + i, mn_sums(all + i));
  for (int t = 0; t < L; t++)
    for (int r = 0; r < R; r++) out[t * Vp + r] = sums[t * R + r];
}

static void chunk(const mn_attention *a, int bh, int t, int n, mn_chunk_state from, mn_chunk_state to,
                  float *work) {
  int Kp = a->Kp, Vp = a->Vp;
  long kn = (long)L * Kp, vn = (long)L * Vp;
  float *q = mn_cut(&work, kn), *write = mn_cut(&work, kn), *u = mn_cut(&work, kn), *sums = mn_cut(&work, kn);
  float *v = mn_cut(&work, vn), *b = mn_cut(&work, vn), *num = mn_cut(&work, vn), z[L], keep[L];
  for (int i = 0; i < n; i++) keep[i] = mn_keep(a, t + i, bh);
  mn_load_keys(a, bh, t, n, false, q, write, u);
  load_values(a, bh, t, n, v, b);
  key_sums(a, n, keep, from.s, q, write, u, sums, z);
  memcpy(to.s, sums + (long)(n - 1) * Kp, sizeof(float) * (size_t)Kp);
  for (int i = 0; i < Vp; i += R) {
    mn_lanes part[L][R];
    memset(part, 0, sizeof part);
    const float *C = from.C + (long)i * Kp;
    float *out = to.C + (long)i * Kp;
    int j = 0;
    for (; j + 2 * MN_LANES <= Kp; j += 2 * MN_LANES)
      pass(2, n, Kp, Vp, C + j, out + j, keep, q + j, write + j, u + j, v + i, b + i, part);
    for (; j < Kp; j += MN_LANES)
      pass(1, n, Kp, Vp, C + j, out + j, keep, q + j, write + j, u + j, v + i, b + i, part);
    gather(Vp, part, num + i);
  }
  mn_write_y(a, bh, t, n, num, z);
}

/* One token on M rows of C[V,K] in place. */
MN_INLINE void step_rows(const int M, int K, float keep, float *restrict C, const float *q,
                         const float *write, const float *u, const float *v, const float *b, float *num) {
  mn_lanes sum[4] = { { 0 } };
  int j = 0;
  for (; j + MN_LANES <= K; j += MN_LANES) {
    mn_lanes qj = mn_load(q + j), wj = mn_load(write + j), uj = mn_load(u + j);
#pragma GCC unroll 4
    for (int i = 0; i < M; i++) {
      float *at = C + (long)i * K + j;
      mn_lanes x = mn_load(at);
      x = x * keep + (wj * v[i] - uj * x) * b[i];
      mn_store(at, x);
      sum[i] += x * qj;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; i++) {
    num[i] = mn_sum(sum[i]);
    for (int m = j; m < K; m++) {
      float *at = C + (long)i * K + m;
      *at = *at * keep + (write[m] * v[i] - u[m] * *at) * b[i];
      num[i] += *at * q[m];
    }
  }
}

static void step(const mn_attention *a, long token, float keep, float *C, const float *q,
                 const float *write, const float *decay, float *num, float *work) {
  const float *v = a->c->in[IN_V].data + token * a->V, *b = a->c->in[IN_BETA].data + token * a->V;
  int i = 0, K = a->K;
  for (int j = 0; j < K; j++) work[j] = keep - decay[j];
  for (; i + 4 <= a->V; i += 4)
    step_rows(4, K, keep, C + (long)i * K, q, write, work, v + i, b + i, num + i);
  for (; i < a->V; i++) step_rows(1, K, keep, C + (long)i * K, q, write, work, v + i, b + i, num + i);
}

/* What the passes of one chunk read and add to; pointers move with the rows and columns. */
typedef struct tile {
  const float *keep, *q, *write, *u, *v, *b, *g;    /* g: gradient of C q */
  float *dq, *dwrite, *du;
} tile;

/* R rows and one vector of columns: forward once more, keeping the state before every token, then
** backward.  dC: gradient of the state after the chunk, becomes that before it. */
static void pass_back(int n, int Kp, int Vp, const float *C, float *dC, tile x, mn_lanes (*dv)[R],
                      mn_lanes (*db)[R]) {
  mn_lanes was[L + 1][R], d[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; r++) {
    was[0][r] = mn_load(C + r * Kp);
    d[r] = mn_load(dC + r * Kp);
  }
  for (int t = 0; t < n; t++) {
    mn_lanes write = mn_load(x.write + t * Kp), u = mn_load(x.u + t * Kp);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
      was[t + 1][r] = was[t][r] * x.keep[t] + (write * x.v[t * Vp + r] - u * was[t][r]) * x.b[t * Vp + r];
  }
  for (int t = n - 1; t >= 0; t--) {
    mn_lanes q = mn_load(x.q + t * Kp), write = mn_load(x.write + t * Kp), u = mn_load(x.u + t * Kp);
    mn_lanes dq = mn_load(x.dq + t * Kp), dwrite = mn_load(x.dwrite + t * Kp), du = mn_load(x.du + t * Kp);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      float v = x.v[t * Vp + r], b = x.b[t * Vp + r], g = x.g[t * Vp + r];
      mn_lanes F = write * v - u * was[t][r];
      d[r] += q * g;
      dq += was[t + 1][r] * g;
      db[t][r] += d[r] * F;
      mn_lanes dF = d[r] * b;
      dv[t][r] += dF * write;
      dwrite += dF * v;
      du -= dF * was[t][r];
      d[r] = d[r] * x.keep[t] - dF * u;
    }
    mn_store(x.dq + t * Kp, dq);
    mn_store(x.dwrite + t * Kp, dwrite);
    mn_store(x.du + t * Kp, du);
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; r++) mn_store(dC + r * Kp, d[r]);
}

/* The key sums backward.  du becomes the gradient of the decay (u = keep - decay). */
static void key_sums_back(int n, int Kp, const float *first, const float *keep, const float *sums,
                          const float *dz, tile x, float *ds) {
  for (int j = 0; j < Kp; j += MN_LANES) {
    mn_lanes d = mn_load(ds + j);
    for (int t = n - 1; t >= 0; t--) {
      long at = (long)t * Kp + j;
      mn_lanes before = mn_load(t ? sums + at - Kp : first + j);
      d += mn_load(x.q + at) * dz[t];
      mn_store(x.dq + at, mn_load(x.dq + at) + mn_load(sums + at) * dz[t]);
      mn_store(x.dwrite + at, mn_load(x.dwrite + at) + d);
      mn_store(x.du + at, d * before - mn_load(x.du + at));
      d *= keep[t] - mn_load(x.u + at);
    }
    mn_store(ds + j, d);
  }
}

static void chunk_back(const mn_attention *a, int bh, int t, int n, mn_chunk_state from,
                       mn_chunk_state grad, float *work) {
  int Kp = a->Kp, Vp = a->Vp;
  long kn = (long)L * Kp, vn = (long)L * Vp;
  float *q = mn_cut(&work, kn), *write = mn_cut(&work, kn), *u = mn_cut(&work, kn), *sums = mn_cut(&work, kn);
  float *dq = mn_cut(&work, kn), *dwrite = mn_cut(&work, kn), *du = mn_cut(&work, kn);
  float *v = mn_cut(&work, vn), *b = mn_cut(&work, vn), *g = mn_cut(&work, vn);
  float *dv = mn_cut(&work, vn), *db = mn_cut(&work, vn), z[L], dz[L], keep[L];
  for (int i = 0; i < n; i++) keep[i] = mn_keep(a, t + i, bh);
  mn_load_keys(a, bh, t, n, true, q, write, u);
  load_values(a, bh, t, n, v, b);
  key_sums(a, n, keep, from.s, q, write, u, sums, z);
  mn_read_dy(a, bh, t, n, z, g, dz);
  memset(dq, 0, sizeof(float) * 3 * (size_t)kn);
  for (int i = 0; i < Vp; i += R) {
    mn_lanes pv[L][R], pb[L][R];
    memset(pv, 0, sizeof pv);
    memset(pb, 0, sizeof pb);
    for (int j = 0; j < Kp; j += MN_LANES) {
      long at = (long)i * Kp + j;
      tile x = { keep, q + j, write + j, u + j, v + i, b + i, g + i, dq + j, dwrite + j, du + j };
      pass_back(n, Kp, Vp, from.C + at, grad.C + at, x, pv, pb);
    }
    gather(Vp, pv, dv + i);
    gather(Vp, pb, db + i);
  }
  key_sums_back(n, Kp, from.s, keep, sums, dz, (tile){ .q = q, .u = u, .dq = dq, .dwrite = dwrite, .du = du },
                grad.s);
  float *into_v = a->c->in[IN_V].grad, *into_b = a->c->in[IN_BETA].grad;
  for (int i = 0; i < n; i++) {
    long token = mn_token(a, t + i, bh);
    mn_keys_back(a, token, keep[i], dq + (long)i * Kp, dwrite + (long)i * Kp, du + (long)i * Kp, sums);
    if (into_v) memcpy(into_v + token * a->V, dv + i * Vp, sizeof(float) * (size_t)a->V);
    if (into_b) memcpy(into_b + token * a->V, db + i * Vp, sizeof(float) * (size_t)a->V);
  }
}

static const mn_matrix_kernels kernels = {
  .name = "joint_gate_attention", .chunk = chunk, .step = step, .chunk_back = chunk_back,
  .key_rows = 7, .value_rows = 5,
};

static int shape(mn_call *c) { return mn_matrix_shape(c, &kernels); }
static void forward(mn_call *c) { mn_matrix_forward(c, &kernels); }
static void backward(mn_call *c) { mn_matrix_backward(c, &kernels); }

const mn_op mn_op_joint_gate_attention = {
  .sig = ATTENTION_INPUTS("beta[T,B,H,V]:01 gamma[T,B,H,?]:01") MATRIX_STATE " | eps=1e-5 den_clamp=0 normalise=1",
  .doc = "gated linear attention with a joint decay: C = (1 - b g^T) * C + (b*v)(g*k)^T, "
         "s = (1-g)*s + g*k, y = C q / den(s.q); factors as in linear_attention "
         "(GaLiTe as released by Pramanik et al.)",
  .time = MN_SCAN,
  .forward = forward,
  .backward = backward,
  .shape = shape,
};
