/* cross_entropy.c -- the loss of a classifier, in one op: the log-softmax is never stored.
** A row that is not asked has weight 0; if none is asked the loss is 0.  The op also outputs each row's loss and
** whether its largest logit is the right one, for evaluations.
** A replayed plan does not check its targets: one out of range gives NaN. */
#include "numerics/fast_math.h"
#include "numerics/simd.h"
#include "op.h"

static double asked(const mn_call *c) {
  const uint8_t *ask = c->in[2].u8;
  long n = c->in[1].n, count = 0;
  if (!ask) return (double)n;
  for (long r = 0; r < n; r++) count += ask[r];
  return (double)count;
}

static void forward(mn_call *c) {
  long V = DIM(c, 'V'), rows = c->in[1].n;
  const uint8_t *ask = c->in[2].u8;
  float *nats = c->out[1].data, *right = c->out[2].data;
  MN_PARALLEL_ROWS(c->ctx, rows * V, rows)
  for (long r = 0; r < rows; r++) {
    const float *x = c->in[0].data + r * V;
    long target = c->in[1].i32[r];
    bool known = target >= 0 && target < V;
    nats[r] = known ? 0 : __builtin_nanf("");
    right[r] = 0;
    if (!known || (ask && !ask[r])) continue;
    float top = mn_vmax(x, V), sum = 0;
    MN_PRAGMA(omp simd reduction(+:sum))
    for (long i = 0; i < V; i++) sum += mn_expf(x[i] - top);
    nats[r] = top + mn_logf(sum) - x[target];
    bool first = x[target] == top;                    /* of equal ones the first is the answer */
    for (long i = 0; first && i < target; i++) first = x[i] < top;
    right[r] = first;
  }
  double total = 0, n = asked(c);
  for (long r = 0; r < rows; r++) total += (double)nats[r];
  c->out[0].data[0] = n > 0 ? (float)(total / n) : 0;
}

/* dlogit = (softmax - [target]) over the number asked; ln(sum of e^x) = nats + x[target] */
static void backward(mn_call *c) {
  long V = DIM(c, 'V'), rows = c->in[1].n;
  const uint8_t *ask = c->in[2].u8;
  double n = asked(c);
  float scale = n > 0 ? (float)((double)c->out[0].grad[0] / n) : 0;
  MN_PARALLEL_ROWS(c->ctx, rows * V, rows)
  for (long r = 0; r < rows; r++) {
    const float *x = c->in[0].data + r * V;
    float *dx = c->in[0].grad + r * V;
    long target = c->in[1].i32[r];
    bool known = target >= 0 && target < V;
    float weight = ask && !ask[r] ? 0 : scale;
    float lse = known && weight != 0 ? c->out[1].data[r] + x[target] : 0;
    MN_PRAGMA(omp simd)
    for (long i = 0; i < V; i++) dx[i] = weight == 0 ? 0 : weight * mn_expf(x[i] - lse);
    if (known) dx[target] -= weight;
  }
}

const mn_op mn_op_cross_entropy = {
  .sig = "logits[...,V] target[...]:<V asked?[...]:bit -> loss[1] ~nats[...] ~right[...]",
  .doc = "loss = mean cross-entropy, in nats, over the rows with a target. nats = ln(sum of e^logits) - logits[target]; right: 1 if the target's "
      "logit is the (first) largest",
  .time = MN_WHOLE, .forward = forward, .backward = backward,
};
