/* joint_gate_attention.c -- gated linear attention whose decay is 1 - b g^T: GaLiTe as released.
** That decay is not of rank one, so tokens cannot be combined into matrix products.  Instead the code
** loads the state seldom: a few rows and columns of it stay in registers for sixteen tokens.
** With b = 1 - keep_v, and u = 1 - keep_k where the state is kept (0 at a reset), one token is
**   C' = C * (keep - b u^T) + w (write_k*k)^T        w = write_v*v
** so that a token depends on the previous one through a single multiply-add. */
#include <string.h>
#include "recurrent/matrix_state.h"
#include "numerics/simd.h"

enum { L = MN_CHUNK, R = 4 };    /* rows of the state in registers, and vectors of columns: */
#if MN_LANES == 16
enum { WIDE = 4, WIDE_BACK = 2 };
#else
enum { WIDE = 2, WIDE_BACK = 1 };
#endif

/* What a token leaves of the state, gates aside: nothing at a reset. */
static float kept_at(const mn_attention *a, int t, int bh) {
  return mn_keep(a, t, bh) * mn_shrink(a, mn_token(a, t, bh));
}

/* What of a token's values is written, w, and forgotten, b: V numbers each. */
static void find_values(const mn_attention *a, long token, float *w, float *b) {
  const float *v = mn_input_at(a, IN_V, token, a->V), *gate = mn_input_at(a, a->gate_v, token, a->V);
  for (int j = 0; j < a->V; j++) {
    const float *kept = mn_kept_value(a, token, j);
    b[j] = kept ? 1 - *kept : gate[j];
    w[j] = gate ? gate[j] * v[j] : v[j];
  }
}

/* The same for a chunk, [16,Vp] each; rows n..15 write nothing. */
static void load_values(const mn_attention *a, const mn_tokens *at, float *w, float *b) {
  memset(w, 0, sizeof(float) * L * (size_t)a->Vp);
  memset(b, 0, sizeof(float) * L * (size_t)a->Vp);
  for (int i = 0; i < at->n; i++) find_values(a, mn_token(a, at->t + i, at->bh), w + (long)i * a->Vp, b + (long)i * a->Vp);
}

/* s of every token (after it), its sum with q, and decay turned into u = keep - decay. */
static void key_sums(const mn_attention *a, int n, const float *keep, const float *s,
                     const float *q, const float *write, float *decay, float *sums, float *z) {
  long Kp = a->Kp, ld = mn_key_row(a);
  for (int t = 0; t < n; t++, s = sums, sums += ld, q += ld, write += ld, decay += ld) {
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

/* What the passes of one chunk read and add to; pointers to [16,Kp], rows ld apart, or [16,Vp], moved to the tile's
** columns or rows.  g: gradient of C q. */
typedef struct tile {
  int n, Kp, ld, Vp;
  const float *keep, *q, *write, *u, *w, *b, *g;
  float *dq, *dwrite, *du;
} tile;

static tile tile_at(tile x, int row, int column) {
  x.q += column, x.write += column, x.u += column, x.w += row, x.b += row;
  if (x.g) x.g += row, x.dq += column, x.dwrite += column, x.du += column;
  return x;
}

/* All tokens through R rows and N vectors of columns of C; if read, part[t][row] gathers C q by lanes. */
MN_INLINE void pass(const bool read, const int N, tile x, const float *C, float *to,
                    mn_lanes (*part)[R]) {
  long Kp = x.Kp, Vp = x.Vp;
  mn_lanes c[R][WIDE];
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int j = 0; j < N; j++) c[r][j] = mn_load(C + r * Kp + j * MN_LANES);
  for (int t = 0; t < x.n; t++) {
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      float b = x.b[t * Vp + r], w = x.w[t * Vp + r];
      mn_lanes sum = part[t][r];
#pragma GCC unroll 4
      for (int j = 0; j < N; j++) {
        long at = (long)t * x.ld + j * MN_LANES;
        mn_lanes kept = x.keep[t] - mn_load(x.u + at) * b;
        c[r][j] = c[r][j] * kept + mn_load(x.write + at) * w;
        if (read) sum += c[r][j] * mn_load(x.q + at);
      }
      if (read) part[t][r] = sum;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int j = 0; j < N; j++) mn_store(to + r * Kp + j * MN_LANES, c[r][j]);
}

/* out[t][i0 .. i0+R-1] = the sums of part[t][0..R-1] over their lanes. */
static void gather(int Vp, mn_lanes (*part)[R], float *out) {
  float sums[L * R];
  mn_lanes *all = &part[0][0];
  for (int i = 0; i < L * R; i += MN_LANES) mn_store(sums + i, mn_sums(all + i));
  for (int t = 0; t < L; t++)
    for (int r = 0; r < R; r++) out[t * Vp + r] = sums[t * R + r];
}

MN_INLINE void walk(const bool read, const mn_attention *a, const mn_tokens *at,
                    mn_chunk_state from, mn_chunk_state to, float *work) {
  int Kp = a->Kp, Vp = a->Vp;
  int ld = (int)mn_key_row(a);
  long kn = (long)L * ld, vn = (long)L * Vp;
  float *q = mn_alloc_from(&work, kn), *write = mn_alloc_from(&work, kn), *u = mn_alloc_from(&work, kn);
  float *sums = mn_alloc_from(&work, kn);
  float *w = mn_alloc_from(&work, vn), *b = mn_alloc_from(&work, vn), *num = mn_alloc_from(&work, vn), z[L], keep[L];
  for (int i = 0; i < at->n; i++) keep[i] = kept_at(a, at->t + i, at->bh);
  mn_load_keys(a, at, q, write, u);
  load_values(a, at, w, b);
  key_sums(a, at->n, keep, from.s, q, write, u, sums, z);
  tile x = { at->n, Kp, ld, Vp, keep, q, write, u, w, b, NULL, NULL, NULL, NULL };
  memcpy(to.s, sums + (long)(at->n - 1) * ld, sizeof(float) * (size_t)Kp);
  for (int i = 0; i < Vp; i += R) {
    mn_lanes part[L][R];
    memset(part, 0, sizeof part);
    const float *C = from.C + (long)i * Kp;
    float *out = to.C + (long)i * Kp;
    int j = 0;
    for (; j + WIDE * MN_LANES <= Kp; j += WIDE * MN_LANES)
      pass(read, WIDE, tile_at(x, i, j), C + j, out + j, part);
    for (; j < Kp; j += MN_LANES) pass(read, 1, tile_at(x, i, j), C + j, out + j, part);
    if (read) gather(Vp, part, num + i);
  }
  if (read) mn_write_y(a, at->bh, at->t, at->n, num, z);
}

static void chunk(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                  mn_chunk_state to, float *work) {
  walk(true, a, at, from, to, work);
}

static void advance(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                    mn_chunk_state to, float *work) {
  walk(false, a, at, from, to, work);
}

/* One token on M rows of C[V,K] in place. */
MN_INLINE void step_rows(const int M, int K, float keep, float *restrict C, const float *q,
                         const float *write, const float *u, const float *w, const float *b,
                         float *num) {
  mn_lanes sum[4] = { { 0 } };
  int j = 0;
  for (; j + MN_LANES <= K; j += MN_LANES) {
    mn_lanes qj = mn_load(q + j), wj = mn_load(write + j), uj = mn_load(u + j);
#pragma GCC unroll 4
    for (int i = 0; i < M; i++) {
      float *at = C + (long)i * K + j;
      mn_lanes x = mn_load(at);
      x = x * (keep - uj * b[i]) + wj * w[i];
      mn_store(at, x);
      sum[i] += x * qj;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; i++) {
    num[i] = mn_sum(sum[i]);
    for (int m = j; m < K; m++) {
      float *at = C + (long)i * K + m;
      *at = *at * (keep - u[m] * b[i]) + write[m] * w[i];
      num[i] += *at * q[m];
    }
  }
}

static void step(const mn_attention *a, long token, float keep, float *C, const float *q,
                 const float *write, const float *decay, float *num, float *work) {
  int i = 0, K = a->K;
  float *u = mn_alloc_from(&work, a->Kp), *w = mn_alloc_from(&work, a->Vp), *b = mn_alloc_from(&work, a->Vp);
  keep *= mn_shrink(a, token);
  for (int j = 0; j < K; j++) u[j] = keep - decay[j];
  find_values(a, token, w, b);
  for (; i + 4 <= a->V; i += 4)
    step_rows(4, K, keep, C + (long)i * K, q, write, u, w + i, b + i, num + i);
  for (; i < a->V; i++)
    step_rows(1, K, keep, C + (long)i * K, q, write, u, w + i, b + i, num + i);
}

/* R rows and N vectors of columns: forward once more, keeping the state before every token, then
** backward.  dC: gradient of the state after the chunk, becomes that before it.  By lanes, A gathers
** sum_j d write and B sum_j d u C of every token and row, from which dw = A and, through the decay,
** db = -B; shrinks: D gathers sum_j d C, too, from which the gradient of keep. */
MN_INLINE void pass_back(const bool shrinks, const int N, tile x, const float *C, float *dC, mn_lanes (*A)[R],
                         mn_lanes (*B)[R], mn_lanes (*D)[R]) {
  long Kp = x.Kp, Vp = x.Vp;
  mn_lanes was[L + 1][R][WIDE_BACK], d[R][WIDE_BACK];
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 2
    for (int j = 0; j < N; j++) {
      was[0][r][j] = mn_load(C + r * Kp + j * MN_LANES);
      d[r][j] = mn_load(dC + r * Kp + j * MN_LANES);
    }
  for (int t = 0; t < x.n; t++) {
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
      for (int j = 0; j < N; j++) {
        long at = (long)t * x.ld + j * MN_LANES;
        float b = x.b[t * Vp + r], w = x.w[t * Vp + r];
        mn_lanes kept = x.keep[t] - mn_load(x.u + at) * b;
        was[t + 1][r][j] = was[t][r][j] * kept + mn_load(x.write + at) * w;
      }
  }
  for (int t = x.n - 1; t >= 0; t--) {
#pragma GCC unroll 2
    for (int j = 0; j < N; j++) {
      long at = (long)t * x.ld + j * MN_LANES;
      mn_lanes q = mn_load(x.q + at), write = mn_load(x.write + at), u = mn_load(x.u + at);
      mn_lanes dq = mn_load(x.dq + at), dwrite = mn_load(x.dwrite + at), du = mn_load(x.du + at);
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        float b = x.b[t * Vp + r], w = x.w[t * Vp + r], g = x.g[t * Vp + r];
        mn_lanes to = d[r][j] + q * g, product = to * was[t][r][j];
        dq += was[t + 1][r][j] * g;
        dwrite += to * w;
        du -= product * b;
        A[t][r] += to * write;
        B[t][r] += product * u;
        if (shrinks) D[t][r] += product;
        d[r][j] = to * (x.keep[t] - u * b);
      }
      mn_store(x.dq + at, dq);
      mn_store(x.dwrite + at, dwrite);
      mn_store(x.du + at, du);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 2
    for (int j = 0; j < N; j++) mn_store(dC + r * Kp + j * MN_LANES, d[r][j]);
}

/* The gradient of shrink by way of `keep` in keep - b u^T, whose b is as it is; mn_keys_back has stored what comes by the keys' decay. */
static void shrink_back(const mn_attention *a, int t, int bh, const float *D, const float *b) {
  float sum = 0;
  for (int i = 0; i < a->V; i++) sum += D[i] * (1 - b[i]);
  *mn_grad_at(a, IN_SHRINK, mn_token(a, t, bh), 1) += mn_keep(a, t, bh) * sum;
}

/* The key sums backward.  du becomes the gradient of the decay (u = keep - decay). */
static void key_sums_back(tile x, const float *first, const float *sums, const float *dz,
                          float *ds) {
  for (int j = 0; j < x.Kp; j += MN_LANES) {
    mn_lanes d = mn_load(ds + j);
    for (int t = x.n - 1; t >= 0; t--) {
      long at = (long)t * x.ld + j;
      mn_lanes before = mn_load(t ? sums + at - x.ld : first + j);
      d += mn_load(x.q + at) * dz[t];
      mn_store(x.dq + at, mn_load(x.dq + at) + mn_load(sums + at) * dz[t]);
      mn_store(x.dwrite + at, mn_load(x.dwrite + at) + d);
      mn_store(x.du + at, d * before - mn_load(x.du + at));
      d *= x.keep[t] - mn_load(x.u + at);
    }
    mn_store(ds + j, d);
  }
}

/* Gradients of v, its gate and keep_v of a token from its A and B. */
static void values_back(const mn_attention *a, long token, const float *A, const float *B) {
  const float *v = mn_input_at(a, IN_V, token, a->V), *gate = mn_input_at(a, a->gate_v, token, a->V);
  float *dv = mn_grad_at(a, IN_V, token, a->V), *dgate = mn_grad_at(a, a->gate_v, token, a->V);
  const bool rest = a->kept_v == MN_KEPT_REST, head = a->kept_v == MN_KEPT_HEAD;
  float *dkept = mn_grad_at(a, IN_KEEP_V, token, head ? 1 : a->V);
  if (dkept && head) *dkept = 0;
  for (int i = 0; dv && i < a->V; i++) dv[i] = gate ? gate[i] * A[i] : A[i];
  for (int i = 0; dgate && i < a->V; i++) dgate[i] = rest ? v[i] * A[i] - B[i] : v[i] * A[i];
  for (int i = 0; dkept && i < a->V; i++) {
    if (head) *dkept += B[i];
    else dkept[i] = B[i];
  }
}

static void chunk_back(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                       mn_chunk_state grad, float *work) {
  int Kp = a->Kp, Vp = a->Vp;
  int ld = (int)mn_key_row(a);
  long kn = (long)L * ld, vn = (long)L * Vp;
  float *q = mn_alloc_from(&work, kn), *write = mn_alloc_from(&work, kn), *u = mn_alloc_from(&work, kn);
  float *sums = mn_alloc_from(&work, kn);
  float *dq = mn_alloc_from(&work, kn), *dwrite = mn_alloc_from(&work, kn), *du = mn_alloc_from(&work, kn);
  float *w = mn_alloc_from(&work, vn), *b = mn_alloc_from(&work, vn), *g = mn_alloc_from(&work, vn);
  float *A = mn_alloc_from(&work, vn), *B = mn_alloc_from(&work, vn), *D = mn_alloc_from(&work, vn), z[L], dz[L], keep[L];
  const bool shrinks = a->c->in[IN_SHRINK].grad != NULL;
  for (int i = 0; i < at->n; i++) keep[i] = kept_at(a, at->t + i, at->bh);
  mn_load_keys(a, at, q, write, u);
  load_values(a, at, w, b);
  key_sums(a, at->n, keep, from.s, q, write, u, sums, z);
  mn_read_dy(a, at->bh, at->t, at->n, z, g, dz);
  memset(dq, 0, sizeof(float) * 3 * (size_t)kn);
  tile x = { at->n, Kp, ld, Vp, keep, q, write, u, w, b, g, dq, dwrite, du };
  for (int i = 0; i < Vp; i += R) {
    mn_lanes sum_A[L][R], sum_B[L][R], sum_D[L][R];
    memset(sum_A, 0, sizeof sum_A);
    memset(sum_B, 0, sizeof sum_B);
    if (shrinks) memset(sum_D, 0, sizeof sum_D);
    const float *C = from.C + (long)i * Kp;
    float *dC = grad.C + (long)i * Kp;
    int j = 0;
    for (; !shrinks && j + WIDE_BACK * MN_LANES <= Kp; j += WIDE_BACK * MN_LANES)
      pass_back(false, WIDE_BACK, tile_at(x, i, j), C + j, dC + j, sum_A, sum_B, NULL);
    for (; !shrinks && j < Kp; j += MN_LANES) pass_back(false, 1, tile_at(x, i, j), C + j, dC + j, sum_A, sum_B, NULL);
    for (; j < Kp; j += MN_LANES) pass_back(true, 1, tile_at(x, i, j), C + j, dC + j, sum_A, sum_B, sum_D);
    gather(Vp, sum_A, A + i);
    gather(Vp, sum_B, B + i);
    if (shrinks) gather(Vp, sum_D, D + i);
  }
  key_sums_back(x, from.s, sums, dz, grad.s);
  for (int i = 0; i < at->n; i++) {
    long token = mn_token(a, at->t + i, at->bh);
    mn_keys_back(a, token, mn_keep(a, at->t + i, at->bh), dq + (long)i * ld, dwrite + (long)i * ld,
                 du + (long)i * ld, sums);
    values_back(a, token, A + (long)i * Vp, B + (long)i * Vp);
    if (shrinks) shrink_back(a, at->t + i, at->bh, D + (long)i * Vp, b + (long)i * Vp);
  }
}

static const mn_matrix_kernels kernels = {
  .name = "joint_gate_attention", .span = MN_JOINT_SPAN, .chunk = chunk, .advance = advance,
  .step = step, .chunk_back = chunk_back,
  .key_rows = 7, .value_rows = 6,
};

static int shape(mn_call *c) {
  const char *missing = !c->in[IN_BETA].data && !c->in[IN_KEEP_V].data ? "beta" : !c->in[IN_GAMMA].data && !c->in[IN_KEEP_K].data ? "gamma" : NULL;
  if (missing) return mn_fail(c->ctx, "joint_gate_attention: %s is missing, or %s", missing, *missing == 'b' ? "keep_v" : "keep_k");
  return mn_matrix_shape(c, &kernels);
}
static void forward(mn_call *c) { mn_matrix_forward(c, &kernels); }
static void backward(mn_call *c) { mn_matrix_backward(c, &kernels); }

const mn_op mn_op_joint_gate_attention = {
  .sig = ATTENTION_INPUTS("beta?[T,B,H,V]:01 gamma?[T,B,H,?]:01") MATRIX_STATE
         " | eps=1e-5 den_clamp=0 normalise=1",
  .doc = "gated linear attention with a joint decay (GaLiTe as released by Pramanik et al., and its `mega`). C = (1 - b g^T) * C + (b*v)(g*k)^T, s = "
      "(1-g)*s + g*k, y = C q / den(s.q). Apart: C = (1 - (1-keep_v)(1-keep_k)^T) * C + (write_v*v)(write_k*k)^T, s = keep_k*s + write_k*k; "
      "inputs as in linear_attention",
  .time = MN_SCAN,
  .cpu_grads = 1u << IN_SHRINK,
  .forward = forward,
  .backward = backward,
  .shape = shape,
};
