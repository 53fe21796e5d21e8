/* ppo_loss.cu -- kernels of ppo_loss: a team of threads per row.  Advantages are normalised by the batch's mean
** and deviation, which a first pass computes: each block's mean and squared distances from it are
** combined exactly (Chan, Golub, LeVeque 1979), so that one pass over the advantages is enough. */
#include "runtime/strided_copy.cuh"
#include "lib/policy.cuh"
#include "runtime/mpi.cuh"
#include "lib/grid_sums.cuh"

enum { IN_LOGITS, IN_VALUES, IN_ACTIONS, IN_OLD_LOG_PROBS, IN_OLD_VALUES, IN_ADVANTAGES, IN_RETURNS };
enum { CLIP, ENTROPY_COEF, VALUE_COEF, CLIP_VALUES, NORMALISE, OVER_RANKS };
enum { POLICY, VALUE, ENTROPY, KL, OUTSIDE, SUMS };

/* ---- mean and deviation of the advantages ---- */

struct Moments { double mean, squares; };           /* of some numbers: their mean, and squared distances from it */

/* Block b sees numbers b * piece .. (b+1) * piece - 1. */
CU_KERNEL moments_of_pieces(const float *x, long n, long piece, Moments *parts) {
  const cu_team block(CU_THREADS);
  const long from = (long)blockIdx.x * piece, end = cu_min(from + piece, n);
  double sum = 0, squares = 0;
  for (long i = from + block.lane; i < end; i += CU_THREADS) sum += x[i];
  const double mean = block.sum(sum) / (double)(end - from);
  for (long i = from + block.lane; i < end; i += CU_THREADS) squares += (x[i] - mean) * (x[i] - mean);
  squares = block.sum(squares);
  if (block.lane == 0) parts[blockIdx.x] = { mean, squares };
}

/* Where the moments of the pieces are; and, with several ranks, the sums that these exchange: all numbers, and
** all squared distances from their mean. */
struct Pieces {
  const Moments *parts;
  int n;                                            /* 0: advantages stay as they are */
  long piece, numbers;
  double all;                                       /* numbers of all ranks */
  double *shared;                                   /* [2] */
};

/* All pieces together: their sum, and squared distances from `mean`; NAN: from their own.  All threads must come. */
static __device__ double sum_of(const Pieces &p, double mean, double *squares) {
  const cu_team block(CU_THREADS);
  const bool mine = block.lane < p.n;
  const double count = mine ? (double)cu_min(p.piece, p.numbers - block.lane * p.piece) : 0;
  const Moments m = mine ? p.parts[block.lane] : Moments{ 0, 0 };
  const double sum = block.sum(m.mean * count);
  if (mean != mean) mean = sum / (double)p.numbers;
  const double away = m.mean - mean;
  *squares = block.sum(m.squares + count * away * away);
  return sum;
}

/* shared[0] = the sum; then, when that is the sum of all ranks, shared[1] = the squares. */
CU_KERNEL share(const Pieces &p, bool squares_too) {
  double squares;
  const double sum = sum_of(p, squares_too ? p.shared[0] / p.all : NAN, &squares);
  if (threadIdx.x == 0) p.shared[squares_too] = squares_too ? squares : sum;
}

/* What advantages are shifted and scaled by.  All threads must come. */
struct Scale {
  double mean, scale;
  __device__ float of(float x) const { return (float)((x - mean) * scale); }
};

static __device__ Scale normaliser(const Pieces &p) {
  if (!p.n) return { 0, 1 };
  double squares, mean;
  if (p.shared) mean = p.shared[0] / p.all, squares = p.shared[1];
  else mean = sum_of(p, NAN, &squares) / p.all;
  if (squares == 0) return { 0, 1 };             /* equal, or one: nothing would be left of them */
  return { mean, 1 / (sqrt(squares / p.all) + 1e-8) };
}

/* Has them made, by kernels that come before those that are launched next. */
static Pieces pieces_of(const mn_call *c) {
  static double *shared = NULL;                     /* a process is one rank, and trains one agent */
  const mn_arg *x = &c->in[IN_ADVANTAGES];
  Pieces p = {};
  if (OPT(c, NORMALISE) == 0) return p;
  const bool over_ranks = OPT(c, OVER_RANKS) != 0 && mn_ranks() > 1;
  Moments *parts = (Moments *)mn_scratch(c->ctx, 0, 4 * CU_TOTALS);
  p.parts = parts;
  p.numbers = x->n;
  p.piece = cu_max(cu_parts(x->n, CU_TOTALS), 4L * CU_THREADS);
  p.n = (int)cu_parts(x->n, p.piece);
  p.all = (double)x->n * (over_ranks ? mn_ranks() : 1);
  CU_LAUNCH(moments_of_pieces, p.n, CU_THREADS, CU_TEAM_SHARED, x->data, x->n, p.piece, parts);
  if (!over_ranks) return p;
  if (!shared && cu_failed(cudaMallocManaged((void **)&shared, 2 * sizeof *shared), "memory for sums of all ranks")) return p;
  p.shared = shared;
  for (int k = 0; k < 2; k++) {
    CU_LAUNCH(share, 1, CU_THREADS, CU_TEAM_SHARED, p, k == 1);
    cu_ranks_sum(c->ctx, 2, shared + k, 1);
  }
  return p;
}

/* ---- rows ---- */

struct Ppo {
  const float *logits, *values, *old_log_probs, *old_values, *advantages, *returns;
  const int32_t *actions;
  long n;
  int A, width;
  float clip, entropy_coef, value_coef;
  bool clip_values;
  Pieces pieces;
};

static __device__ float clipped(float x, float low, float high) { return mn_at_most(mn_at_least(x, low), high); }

/* (exp(x) - 1) - x, from its series where the difference would lose its digits; r = exp(x). */
static __device__ double excess(double x, double r) {
  if (x < -0.125 || x > 0.125) return (r - 1) - x;
  return x * x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x * (1.0 / 120 + x / 720))));
}

/* The value loss of one row; its derivative by V in *slope. */
static __device__ float value_error(const Ppo &x, long i, float *slope) {
  const float v = x.values[i], old = x.old_values[i], g = x.returns[i], error = v - g;
  *slope = error;
  if (!x.clip_values) return 0.5f * error * error;
  const float near = old + clipped(v - old, -x.clip, x.clip) - g;
  if (near * near <= error * error) return 0.5f * error * error;
  *slope = v - old > -x.clip && v - old < x.clip ? near : 0.0f;
  return 0.5f * near * near;
}

CU_KERNEL ppo_sums(const Ppo &x, double *totals) {
  const cu_team team(x.width);
  const Scale s = normaliser(x.pieces);
  double sum[SUMS] = {};
  for (long row = team.first(); team.any(row, x.n); row = team.next(row)) {
    const bool real = row < x.n;
    const float *logit = x.logits + row * x.A;
    const cu_policy p = cu_policy_of(team, logit, real ? x.A : 0);
    if (!real || team.lane) continue;
    float unused;
    const float log_ratio = cu_chosen(logit, x.actions[row], x.A) - p.lse - x.old_log_probs[row];
    const float r = mn_expf(log_ratio), advantage = s.of(x.advantages[row]);
    sum[POLICY] += (double)mn_at_least(-advantage * r, -advantage * clipped(r, 1 - x.clip, 1 + x.clip));
    sum[VALUE] += (double)value_error(x, row, &unused);
    sum[ENTROPY] += (double)p.entropy;
    sum[KL] += excess((double)log_ratio, (double)r);
    sum[OUTSIDE] += r - 1 > x.clip || r - 1 < -x.clip;
  }
  cu_total_part<SUMS>(sum, totals);
}

struct Outputs { float *loss, *mean[SUMS]; };

CU_KERNEL ppo_means(const double *totals, int blocks, double n, double entropy_coef, double value_coef,
                    const Outputs &out) {
  double mean[SUMS];
  CU_UNROLL
  for (int k = 0; k < SUMS; k++) mean[k] = cu_total(totals, blocks, SUMS, k) / n;
  if (threadIdx.x) return;
  *out.loss = (float)(mean[POLICY] - entropy_coef * mean[ENTROPY] + value_coef * mean[VALUE]);
  CU_UNROLL
  for (int k = 0; k < SUMS; k++) *out.mean[k] = (float)mean[k];
}

CU_KERNEL ppo_slopes(const Ppo &x, const float *dloss, float *dlogits, float *dvalues) {
  const cu_team team(x.width);
  const Scale s = normaliser(x.pieces);
  const float share = dloss[0] / (float)x.n;
  for (long row = team.first(); team.any(row, x.n); row = team.next(row)) {
    const bool real = row < x.n;
    const float *logit = x.logits + row * x.A;
    const cu_policy p = cu_policy_of(team, logit, real ? x.A : 0);
    if (!real) continue;
    float slope;
    value_error(x, row, &slope);
    if (dvalues && team.lane == 0) dvalues[row] = x.value_coef * share * slope;
    if (!dlogits) continue;
    const int action = x.actions[row];
    const float r = mn_expf(cu_chosen(logit, action, x.A) - p.lse - x.old_log_probs[row]);
    const float advantage = s.of(x.advantages[row]);
    const float counts =
      -advantage * r >= -advantage * clipped(r, 1 - x.clip, 1 + x.clip) ? advantage * r : 0.0f;
    for (int a = team.lane; a < x.A; a += x.width) {
      const float pa = p.p(logit[a]), chosen = a == action ? 1.0f : 0.0f;
      dlogits[row * x.A + a] = share * (counts * (pa - chosen) + x.entropy_coef * p.spread(logit[a], pa));
    }
  }
}

/* ---- calls ---- */

/* The call as kernels see it, with the moments under way. */
static Ppo ppo_of(const mn_call *c) {
  Ppo x = {};
  x.logits = c->in[IN_LOGITS].data;
  x.values = c->in[IN_VALUES].data;
  x.actions = c->in[IN_ACTIONS].i32;
  x.old_log_probs = c->in[IN_OLD_LOG_PROBS].data;
  x.old_values = c->in[IN_OLD_VALUES].data;
  x.advantages = c->in[IN_ADVANTAGES].data;
  x.returns = c->in[IN_RETURNS].data;
  x.n = c->in[IN_VALUES].n;
  x.A = DIM(c, 'A');
  x.width = cu_team_width(x.A);
  x.clip = (float)OPT(c, CLIP);
  x.entropy_coef = (float)OPT(c, ENTROPY_COEF);
  x.value_coef = (float)OPT(c, VALUE_COEF);
  x.clip_values = OPT(c, CLIP_VALUES) != 0;
  x.pieces = pieces_of(c);
  return x;
}

static void forward(mn_call *c) {
  const Ppo x = ppo_of(c);
  const int blocks = cu_total_blocks(x.n, x.width);
  double *totals = (double *)mn_scratch(c->ctx, 1, 2 * SUMS * CU_TOTALS);
  Outputs out = { c->out[0].data, {} };
  for (int k = 0; k < SUMS; k++) out.mean[k] = c->out[1 + k].data;
  CU_LAUNCH(ppo_sums, blocks, CU_THREADS, CU_TEAM_SHARED, x, totals);
  CU_LAUNCH(ppo_means, 1, CU_THREADS, CU_TEAM_SHARED, totals, blocks, (double)x.n, OPT(c, ENTROPY_COEF),
            OPT(c, VALUE_COEF), out);
}

static void backward(mn_call *c) {
  const Ppo x = ppo_of(c);
  CU_LAUNCH(ppo_slopes, cu_team_blocks(x.n, x.width), CU_THREADS, CU_TEAM_SHARED, x, c->out[0].grad,
            c->in[IN_LOGITS].grad, c->in[IN_VALUES].grad);
  for (int i = IN_OLD_LOG_PROBS; i <= IN_RETURNS; i++) cu_zero_grad(&c->in[i]);
}

MN_KERNEL(ppo_loss, forward, backward)
