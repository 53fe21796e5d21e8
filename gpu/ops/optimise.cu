/* optimise.cu -- grad_norm, adam, sgd and rmsprop, which run on all leaves of a model.  One launch computes all successive
** calls. */
#include "runtime/parameter_table.cuh"
#include "lib/grid_sums.cuh"
#include "ops/gradient_norm.h"

/* ---- grad_norm ---- */

CU_KERNEL square_leaves(const Leaves &all, double *parts) {
  long from, end;
  int number;
  const Leaf l = leaf_of(all, (int)blockIdx.x, &from, &end, &number);
  float sum = 0;
  for (long i = from + threadIdx.x; l.g && i < end; i += CU_THREADS) sum += l.g[i] * l.g[i];
  double squares = cu_team(CU_THREADS).sum((double)sum);
  if (!mn_squares_fit((float)squares)) {               /* all threads of the block alike */
    squares = 0;
    for (long i = from + threadIdx.x; l.g && i < end; i += CU_THREADS) squares += (double)l.g[i] * (double)l.g[i];
    squares = cu_team(CU_THREADS).sum(squares);
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = squares;
}

struct Shown { float *at[TABLE]; };                   /* where each leaf's norm is shown, or NULL */

/* One block adds them up, leaf by leaf.  `sum` carries a double in two floats: high and low part. */
CU_KERNEL add_leaves(const Leaves &all, const Shown &own, const double *parts, float *sum, float *norm, bool first) {
  const cu_team block(CU_THREADS);
  double total = first ? 0 : mn_squares_read(sum);
  for (int i = 0; i < all.n; i++) {
    const int end = i + 1 < all.n ? all.at[i + 1].first : all.blocks;
    double squares = 0;
    for (int b = all.at[i].first + block.lane; b < end; b += CU_THREADS) squares += parts[b];
    squares = block.sum(squares);
    total += squares;
    if (own.at[i] && block.lane == 0) *own.at[i] = (float)sqrt(squares);
  }
  if (block.lane) return;
  mn_squares_write(total, sum);
  norm[0] = (float)sqrt(total);
}

/* The calls from `from` on that go with the first of them: they share what the inputs from `shared` on hold, and
** stand in one table.  No leaf may come twice where it is changed. */
static int take(Leaves *all, mn_call *const *calls, int from, int n, int shared, int end, bool changed) {
  int to = from;
  for (; to < n && all->n < TABLE; to++) {
    bool fits = true;
    for (int k = shared; k < end; k++) fits = fits && calls[to]->in[k].data == calls[from]->in[k].data;
    for (int i = from; changed && i < to; i++) fits = fits && calls[to]->in[0].data != calls[i]->in[0].data;
    if (!fits) break;
    all->add(calls[to]);
  }
  return to;
}

static int grad_norm_together(mn_call *const *calls, int n, bool back) {
  (void)back;                    /* there is no way back */
  for (int from = 0, to; from < n; from = to) {
    Leaves all;
    Shown own = {};
    const mn_call *c = calls[from];
    int next = from + 1;                            /* where another sum is begun */
    while (next < n && OPT(calls[next], 0) == 0) next++;
    to = take(&all, calls, from, next, 1, 3, false);
    for (int i = from; i < to; i++) own.at[i - from] = calls[i]->in[3].data;
    double *parts = (double *)mn_scratch(c->ctx, 0, 2 * (long)all.blocks);
    CU_LAUNCH(square_leaves, all.blocks, CU_THREADS, CU_TEAM_SHARED, all, parts);
    CU_LAUNCH(add_leaves, 1, CU_THREADS, CU_TEAM_SHARED, all, own, (const double *)parts, c->in[1].data,
              c->in[2].data, OPT(c, 0) != 0);
  }
  return n;
}

static void grad_norm_forward(mn_call *c) { grad_norm_together(&c, 1, false); }

MN_KERNEL_FUSED(grad_norm, grad_norm_forward, NULL, grad_norm_together)

/* ---- adam ---- */

struct Hyper { float lr, a1, a2, eps, scale, keep, c1, c2; bool mean; };       /* mean: squares do not count yet */

static __device__ Hyper hyper_of(const float *hyper, float norm, const float *weight_decay, float c1, float c2, float rectified) {
  Hyper h = { hyper[0], hyper[1], hyper[2], hyper[3], 1, 1, c1, c2, rectified == 0 };
  h.scale = mn_step_scale(norm, hyper[4], true);
  if (weight_decay) h.keep = 1 - h.lr * weight_decay[0];
  if (rectified > 0) h.lr *= rectified;
  return h;
}

static __device__ float step(const Hyper &h, float g, float w, float *m, float *v) {
  g *= h.scale;
  *m = (1 - h.a1) * *m + h.a1 * g;
  *v = (1 - h.a2) * *v + h.a2 * g * g;
  if (h.mean) return h.keep * w - h.lr * (*m / h.c1);
  return h.keep * w - h.lr * (*m / h.c1) / (sqrtf(*v / h.c2) + h.eps);
}

CU_KERNEL adam_leaves(const Leaves &all, const float *hyper, const float *norm, const float *weight_decay, bool rectified) {
  long from, end;
  int number;
  const Leaf l = leaf_of(all, (int)blockIdx.x, &from, &end, &number);
  if (!l.g || mn_step_scale(norm[0], hyper[4], true) < 0) return;          /* all threads of the block alike */
  cu_smem<float> corrections = CU_SHARED(float, 0);
  if (threadIdx.x < 2) corrections[(int)threadIdx.x] = (float)-expm1(hyper[5] * log1p(-(double)hyper[1 + threadIdx.x]));
  if (threadIdx.x == 2) corrections[2] = rectified ? mn_rectified(hyper[2], hyper[5]) : 1;
  __syncthreads();
  const Hyper h = hyper_of(hyper, norm[0], weight_decay, corrections[0], corrections[1], corrections[2]);
  const bool aligned = (((uintptr_t)l.w | (uintptr_t)l.m | (uintptr_t)l.v | (uintptr_t)l.g) & 15) == 0;
  const long quads = aligned ? end / 4 : from / 4;           /* up to here by fours */
  for (long i = from / 4 + threadIdx.x; i < quads; i += CU_THREADS) {
    const float4 g = ((const float4 *)l.g)[i];
    float4 w = ((float4 *)l.w)[i], m = ((float4 *)l.m)[i], v = ((float4 *)l.v)[i];
    w.x = step(h, g.x, w.x, &m.x, &v.x);
    w.y = step(h, g.y, w.y, &m.y, &v.y);
    w.z = step(h, g.z, w.z, &m.z, &v.z);
    w.w = step(h, g.w, w.w, &m.w, &v.w);
    ((float4 *)l.w)[i] = w, ((float4 *)l.m)[i] = m, ((float4 *)l.v)[i] = v;
  }
  for (long i = 4 * quads + threadIdx.x; i < end; i += CU_THREADS) l.w[i] = step(h, l.g[i], l.w[i], l.m + i, l.v + i);
}

static int adam_together(mn_call *const *calls, int n, bool back) {
  (void)back;                    /* there is no way back */
  for (int from = 0, to; from < n; from = to) {
    Leaves all;
    const mn_call *c = calls[from];
    int alike = from + 1;
    while (alike < n && OPT(calls[alike], 0) == OPT(c, 0)) alike++;
    to = take(&all, calls, from, alike, 3, 6, true);
    CU_LAUNCH(adam_leaves, all.blocks, CU_THREADS, 3 * sizeof(float), all, c->in[3].data, c->in[4].data,
              c->in[5].data, OPT(c, 0) != 0);
  }
  return n;
}

static void adam_forward(mn_call *c) { adam_together(&c, 1, false); }

MN_KERNEL_FUSED(adam, adam_forward, NULL, adam_together)

/* ---- sgd and rmsprop: a launch for each leaf ---- */

CU_KERNEL sgd_leaf(float *w, const float *g, float *v, const float *hyper, const float *norm, bool ahead, long n) {
  const float scale = mn_step_scale(norm[0], hyper[4], false);
  if (scale < 0) return;
  const float lr = hyper[0], momentum = hyper[1], decay = hyper[3];
  const float keep = hyper[5] > 1 ? momentum : 0, take = hyper[5] > 1 ? 1 - hyper[2] : 1;
  CU_LOOP(i, n) {
    float d = g[i] * scale + decay * w[i];
    if (v) {
      const float now = keep * v[i] + take * d;
      v[i] = now;
      d = ahead ? d + momentum * now : now;
    }
    w[i] -= lr * d;
  }
}

static void sgd_forward(mn_call *c) {
  const long n = c->in[0].n;
  if (!c->in[0].grad) return;
  CU_LAUNCH(sgd_leaf, cu_blocks(n), CU_THREADS, 0, c->in[0].data, (const float *)c->in[0].grad, c->in[1].data, (const float *)c->in[2].data,
            (const float *)c->in[3].data, OPT(c, 0) != 0, n);
}

MN_KERNEL(sgd, sgd_forward, NULL)

struct Rms { float *w, *g, *v, *m, *mean; };

CU_KERNEL rmsprop_leaf(const Rms &l, const float *hyper, const float *norm, long n) {
  const float scale = mn_step_scale(norm[0], hyper[5], true);
  if (scale < 0) return;
  const float lr = hyper[0], a = hyper[1], eps = hyper[2], decay = hyper[3], momentum = hyper[4];
  CU_LOOP(i, n) {
    const float d = l.g[i] * scale + decay * l.w[i];
    float size = (1 - a) * l.v[i] + a * d * d;
    l.v[i] = size;
    if (l.mean) {
      const float mean = (1 - a) * l.mean[i] + a * d;
      l.mean[i] = mean;
      size -= mean * mean;
      size = size < 0 ? 0 : size;
    }
    float step = d / (sqrtf(size) + eps);
    if (l.m) l.m[i] = step = momentum * l.m[i] + step;
    l.w[i] -= lr * step;
  }
}

static void rmsprop_forward(mn_call *c) {
  const Rms l = { c->in[0].data, c->in[0].grad, c->in[1].data, c->in[2].data, c->in[3].data };
  if (l.g) CU_LAUNCH(rmsprop_leaf, cu_blocks(c->in[0].n), CU_THREADS, 0, l, c->in[4].data, c->in[5].data, c->in[0].n);
}

MN_KERNEL(rmsprop, rmsprop_forward, NULL)
