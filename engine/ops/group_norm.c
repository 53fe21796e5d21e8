/* group_norm.c -- layer normalisation of groups of channels, over all positions of a sample (Wu, He 2018).
** A sample is [P,C]: C channels at P positions, of which a group has C / groups neighbouring ones.  `stats` keeps mean and
** 1/sqrt(variance + eps) of each group. */
#include <math.h>
#include <string.h>
#include "op.h"

enum { GROUPS, EPS };            /* options */

static int shape(mn_call *c) {
  const double groups = OPT(c, GROUPS);
  const int C = DIM(c, 'C');
  if (!(groups >= 1 && groups <= C) || groups != (int)groups || C % (int)groups)
    return mn_fail(c->ctx, "group_norm: groups is %g, expected a divisor of the %d channels", groups, C);
  c->out[1].shape[2] = (int)groups;
  return 0;
}

static long samples(const mn_call *c) { return (long)c->in[0].shape[0] * c->in[0].shape[1]; }

static void sample_forward(const mn_call *c, long sample) {
  const long P = DIM(c, 'P'), C = DIM(c, 'C'), G = (long)OPT(c, GROUPS), W = C / G;
  const float *x = c->in[0].data + sample * P * C, *weight = c->in[1].data, *bias = c->in[2].data;
  float *y = c->out[0].data + sample * P * C;
  for (long g = 0; g < G; g++) {
    float *stats = c->out[1].data + 2 * (sample * G + g);
    double sum = 0, squares = 0;
    for (long p = 0; p < P; p++)
      for (long i = g * W; i < (g + 1) * W; i++) sum += (double)x[p * C + i];
    const double mean = sum / (double)(P * W);
    for (long p = 0; p < P; p++)
      for (long i = g * W; i < (g + 1) * W; i++) squares += ((double)x[p * C + i] - mean) * ((double)x[p * C + i] - mean);
    stats[0] = (float)mean;
    stats[1] = (float)(1 / sqrt(squares / (double)(P * W) + OPT(c, EPS)));
    for (long p = 0; p < P; p++)
      for (long i = g * W; i < (g + 1) * W; i++) y[p * C + i] = (x[p * C + i] - stats[0]) * stats[1] * weight[i] + bias[i];
  }
}

/* With n = (x - mean) scale and g = dy weight: dx = scale (g - mean of g - n * mean of g n). */
static void sample_backward(const mn_call *c, long sample) {
  const long P = DIM(c, 'P'), C = DIM(c, 'C'), G = (long)OPT(c, GROUPS), W = C / G;
  const float *x = c->in[0].data + sample * P * C, *weight = c->in[1].data, *dy = c->out[0].grad + sample * P * C;
  float *dx = c->in[0].grad + sample * P * C;
  for (long g = 0; g < G; g++) {
    const float mean = c->out[1].data[2 * (sample * G + g)], scale = c->out[1].data[2 * (sample * G + g) + 1];
    double sum = 0, along = 0;
    for (long p = 0; p < P; p++)
      for (long i = g * W; i < (g + 1) * W; i++) {
        const double d = (double)(dy[p * C + i] * weight[i]);
        sum += d;
        along += d * (double)((x[p * C + i] - mean) * scale);
      }
    const float a = (float)(sum / (double)(P * W)), b = (float)(along / (double)(P * W));
    for (long p = 0; p < P; p++)            /* of one number y is the bias, whatever x is; rounding would say otherwise */
      for (long i = g * W; i < (g + 1) * W; i++)
        dx[p * C + i] = P * W == 1 ? 0 : scale * (dy[p * C + i] * weight[i] - a - (x[p * C + i] - mean) * scale * b);
  }
}

/* Adds a sample's part of the gradients of weight and bias. */
static void sample_params(const mn_call *c, long sample, float *dweight, float *dbias) {
  const long P = DIM(c, 'P'), C = DIM(c, 'C'), G = (long)OPT(c, GROUPS), W = C / G;
  const float *x = c->in[0].data + sample * P * C, *dy = c->out[0].grad + sample * P * C, *stats = c->out[1].data + 2 * sample * G;
  for (long p = 0; p < P; p++)
    for (long i = 0; i < C; i++) {
      dweight[i] += dy[p * C + i] * ((x[p * C + i] - stats[2 * (i / W)]) * stats[2 * (i / W) + 1]);
      dbias[i] += dy[p * C + i];
    }
}

static void forward(mn_call *c) {
  MN_FOR(c->ctx, 4.0 * (double)c->in[0].n, sample, 0, samples(c), 1, sample_forward(c, sample));
}

/* dweight and dbias are summed in fixed parts, which are added in order. */
static void backward(mn_call *c) {
  enum { PART = 16 };
  const long C = DIM(c, 'C'), n = samples(c), parts = (n + PART - 1) / PART;
  if (c->in[0].grad) MN_FOR(c->ctx, 4.0 * (double)c->in[0].n, sample, 0, n, 1, sample_backward(c, sample));
  if (!c->in[1].grad && !c->in[2].grad) return;
  float *all = mn_scratch(c->ctx, 0, parts * 2 * C);
  MN_PARALLEL(c->ctx, 4.0 * (double)c->in[0].n)
  for (long part = 0; part < parts; part++) {
    float *dweight = all + part * 2 * C;
    memset(dweight, 0, (size_t)(2 * C) * sizeof *dweight);
    for (long s = part * PART; s < n && s < (part + 1) * PART; s++) sample_params(c, s, dweight, dweight + C);
  }
  for (int k = 0; k < 2; k++) {
    float *to = c->in[1 + k].grad;
    if (!to) continue;
    memset(to, 0, (size_t)C * sizeof *to);
    for (long part = 0; part < parts; part++)
      for (long i = 0; i < C; i++) to[i] += all[(part * 2 + k) * C + i];
  }
}

const mn_op mn_op_group_norm = {
  .sig = "x[T,B,P,C] weight[C] bias[C] -> y[T,B,P,C] ~~stats[T,B,?,2] | groups=1 eps=1e-5",
  .doc = "y = (x - mean) / sqrt(var + eps) * weight + bias, over the positions P and a group of the channels C of each sample (Wu, He 2018)",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
