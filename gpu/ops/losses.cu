/* losses.cu -- a2c_loss cross_entropy: losses that are means over rows, a team of threads to a row.  (PPO's
** is in ppo_loss.cu.) */
#include "lib/policy.cuh"
#include "lib/grid_sums.cuh"

/* ---- a2c_loss ---- */

struct A2c {
  const float *logits, *values, *returns;
  const int32_t *actions;
  long n, all;                                      /* rows that count; rows of logits and values */
  int A, width;
  float entropy_coef, value_coef;
};

static A2c a2c_of(const mn_call *c) {
  const int A = DIM(c, 'A');
  return { c->in[0].data, c->in[1].data, c->in[2].data, c->in[3].i32, c->in[2].n, c->in[1].n, A, cu_team_width(A),
           (float)OPT(c, 0), (float)OPT(c, 1) };
}

enum { ACTOR, VALUE, ENTROPY, A2C_SUMS };

CU_KERNEL a2c_sums(const A2c &x, double *parts) {
  const cu_team team(x.width);
  double sum[A2C_SUMS] = {};
  for (long row = team.first(); team.any(row, x.n); row = team.next(row)) {
    const bool real = row < x.n;
    const float *logit = x.logits + row * x.A;
    const cu_policy p = cu_policy_of(team, logit, real ? x.A : 0);
    if (!real || team.lane) continue;
    const float advantage = x.returns[row] - x.values[row];
    sum[ACTOR] += (double)((p.lse - cu_chosen(logit, x.actions[row], x.A)) * advantage);
    sum[VALUE] += (double)(advantage * advantage);
    sum[ENTROPY] += (double)p.entropy;
  }
  cu_total_part<A2C_SUMS>(sum, parts);
}

CU_KERNEL a2c_means(const double *parts, int blocks, double n, double entropy_coef, double value_coef,
                    float *loss, float *actor, float *value, float *entropy) {
  double mean[A2C_SUMS];
  CU_UNROLL
  for (int k = 0; k < A2C_SUMS; k++) mean[k] = cu_total(parts, blocks, A2C_SUMS, k) / n;
  if (threadIdx.x) return;
  *loss = (float)(mean[ACTOR] - entropy_coef * mean[ENTROPY] + value_coef * mean[VALUE]);
  *actor = (float)mean[ACTOR];
  *value = (float)mean[VALUE];
  *entropy = (float)mean[ENTROPY];
}

static void a2c_loss_forward(mn_call *c) {
  const A2c x = a2c_of(c);
  const int blocks = cu_total_blocks(x.n, x.width);
  double *parts = (double *)mn_scratch(c->ctx, 0, 2 * A2C_SUMS * CU_TOTALS);
  CU_LAUNCH(a2c_sums, blocks, CU_THREADS, CU_TEAM_SHARED, x, parts);
  CU_LAUNCH(a2c_means, 1, CU_THREADS, CU_TEAM_SHARED, parts, blocks, (double)x.n, OPT(c, 0), OPT(c, 1), c->out[0].data,
            c->out[1].data, c->out[2].data, c->out[3].data);
}

CU_KERNEL a2c_slopes(const A2c &x, const float *dloss, float *dlogits, float *dvalues, float *dreturns) {
  const cu_team team(x.width);
  const float scale = dloss[0] / (float)x.n;
  for (long row = team.first(); team.any(row, x.all); row = team.next(row)) {
    const bool counts = row < x.n;
    const float *logit = x.logits + row * x.A;
    const cu_policy p = cu_policy_of(team, logit, counts ? x.A : 0);
    if (row >= x.all) continue;
    const float advantage = counts ? x.returns[row] - x.values[row] : 0.0f;
    if (dvalues && team.lane == 0) dvalues[row] = -2 * x.value_coef * scale * advantage;
    if (dreturns && counts && team.lane == 0) dreturns[row] = 0;
    for (int a = team.lane; dlogits && a < x.A; a += x.width) {
      float d = 0;
      if (counts) {
        const float pa = p.p(logit[a]), chosen = a == x.actions[row] ? 1.0f : 0.0f;
        d = scale * (advantage * (pa - chosen) + x.entropy_coef * p.spread(logit[a], pa));
      }
      dlogits[row * x.A + a] = d;
    }
  }
}

static void a2c_loss_backward(mn_call *c) {
  const A2c x = a2c_of(c);
  CU_LAUNCH(a2c_slopes, cu_team_blocks(x.all, x.width), CU_THREADS, CU_TEAM_SHARED, x, c->out[0].grad,
            c->in[0].grad, c->in[1].grad, c->in[2].grad);
}

MN_KERNEL(a2c_loss, a2c_loss_forward, a2c_loss_backward)

/* ---- cross_entropy ---- */

struct Rows {
  const float *logits;
  const int32_t *target;
  const uint8_t *asked;
  long rows, V;
  int width;
};

static Rows rows_of(const mn_call *c) {
  const long V = DIM(c, 'V');
  return { c->in[0].data, c->in[1].i32, c->in[2].u8, c->in[1].n, V, cu_team_width(V) };
}

enum { NATS, ASKED, CE_SUMS };

CU_KERNEL entropy_rows(const Rows &x, float *nats, float *right, double *parts) {
  const cu_team team(x.width);
  double sum[CE_SUMS] = {};
  for (long row = team.first(); team.any(row, x.rows); row = team.next(row)) {
    const bool real = row < x.rows;
    const float *logit = x.logits + row * x.V;
    const long target = real ? x.target[row] : -1;
    const bool known = target >= 0 && target < x.V, counts = real && (!x.asked || x.asked[row]);
    const long V = known && counts ? x.V : 0;
    const float mine = V ? logit[target] : 0.0f;
    float top = -INFINITY, all = 0;
    int beaten = 0;                                 /* by one as large that comes first */
    for (long i = team.lane; i < V; i += x.width) {
      top = logit[i] > top ? logit[i] : top;
      beaten |= i < target && !(logit[i] < mine);
    }
    top = team.max(top);
    beaten = team.max(beaten);
    for (long i = team.lane; i < V; i += x.width) all += mn_expf(logit[i] - top);
    all = team.sum(all);
    if (!real || team.lane) continue;
    const float cost = !known ? NAN : V ? top + mn_logf(all) - mine : 0.0f;
    nats[row] = cost;
    right[row] = V && mine == top && !beaten ? 1.0f : 0.0f;
    sum[NATS] += (double)cost;
    sum[ASKED] += counts;
  }
  cu_total_part<CE_SUMS>(sum, parts);
}

CU_KERNEL entropy_mean(const double *parts, int blocks, float *loss) {
  const double n = cu_total(parts, blocks, CE_SUMS, ASKED), nats = cu_total(parts, blocks, CE_SUMS, NATS);
  if (threadIdx.x == 0) *loss = n > 0 ? (float)(nats / n) : 0.0f;
}

static void cross_entropy_forward(mn_call *c) {
  const Rows x = rows_of(c);
  const int blocks = cu_total_blocks(x.rows, x.width);
  double *parts = (double *)mn_scratch(c->ctx, 0, 2 * CE_SUMS * CU_TOTALS);
  CU_LAUNCH(entropy_rows, blocks, CU_THREADS, CU_TEAM_SHARED, x, c->out[1].data, c->out[2].data, parts);
  CU_LAUNCH(entropy_mean, 1, CU_THREADS, CU_TEAM_SHARED, parts, blocks, c->out[0].data);
}

CU_KERNEL count_asked(const uint8_t *asked, long rows, double *parts) {
  double sum = 0;
  CU_LOOP(r, rows) sum += asked[r];
  cu_total_part<1>(&sum, parts);
}

/* dlogit = (softmax - [target]) over the number asked; ln(sum of e^x) = nats + x[target] */
CU_KERNEL entropy_slopes(const Rows &x, const float *nats, const float *dloss, const double *parts, int blocks,
                         float *dlogits, cu_divisor V) {
  const double n = x.asked ? cu_total(parts, blocks, 1, 0) : (double)x.rows;
  const float scale = n > 0 ? (float)((double)dloss[0] / n) : 0.0f;
  CU_LOOP(i, x.rows * x.V) {
    long at;
    const long row = V.divide(i, &at), target = x.target[row];
    const bool known = target >= 0 && target < x.V;
    const float weight = x.asked && !x.asked[row] ? 0.0f : scale;
    const float lse = known && weight != 0 ? nats[row] + x.logits[row * x.V + target] : 0.0f;
    dlogits[i] = (weight == 0 ? 0.0f : weight * mn_expf(x.logits[i] - lse)) - (known && at == target ? weight : 0.0f);
  }
}

static void cross_entropy_backward(mn_call *c) {
  const Rows x = rows_of(c);
  const int blocks = cu_total_blocks(x.rows, 1);
  double *parts = (double *)mn_scratch(c->ctx, 0, 2 * CU_TOTALS);
  if (x.asked) CU_LAUNCH(count_asked, blocks, CU_THREADS, CU_TEAM_SHARED, x.asked, x.rows, parts);
  CU_LAUNCH(entropy_slopes, cu_blocks(c->in[0].n, 2), CU_THREADS, CU_TEAM_SHARED, x, c->out[1].data,
            c->out[0].grad, parts, blocks, c->in[0].grad, cu_divisor(x.V));
}

MN_KERNEL(cross_entropy, cross_entropy_forward, cross_entropy_backward)
