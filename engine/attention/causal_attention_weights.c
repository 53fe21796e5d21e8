/* causal_attention_weights.c -- the weights that the last row of a call of `attention` gives to each key, for display. */
#include <math.h>
#include <string.h>
#include "numerics/simd.h"
#include "attention_weights.h"
#include "causal_attention.h"

/* Row at which the episode of row t began, or -1. */
static int start_of(const mn_call *c, int B, int t, int b) {
  const uint8_t *done = c->in[SM_DONE].u8;
  while (t >= 0 && !(done && done[(long)t * B + b])) t--;
  return t;
}

/* q_t + more. */
static void query(const mn_softmax *s, int t, int b, int h, int more, float *to) {
  const float *q = s->c->in[SM_Q].data + mn_softmax_at(s, t, b, h, s->K), *add = s->c->in[more].data;
  for (int d = 0; d < s->K; d++) to[d] = q[d] + (add ? add[(long)h * s->K + d] : 0);
}

static void one_head(const mn_softmax *s, int t, int b, int h, int low, bool carried, mn_weight *to, int N) {
  const int size = s->shared ? s->V : s->K;
  float *position = mn_scratch(s->c->ctx, 0, s->K + size), *content = position + s->K;
  const float *r = s->c->in[SM_R].data;
  int n = 0;
  if (s->shared) memcpy(content, s->c->in[SM_V].data + mn_softmax_at(s, t, b, h, size), sizeof *content * (size_t)size);
  else query(s, t, b, h, SM_U, content);
  query(s, t, b, h, SM_W, position);
  for (int j = low; j <= s->M + t; j++) {
    if (carried && j < s->M && mn_softmax_blocked(s, j, b)) continue;
    int back = s->M + t - j;
    float sum = mn_dot(size, content, mn_softmax_key(s, SM_MK, SM_K, j, b, h, s->K)) / sqrtf((float)s->K);
    if (r) sum += mn_weight_score(s->K, position, r + ((long)back * s->H + h) * s->K);
    sum = sum > MN_SCORE_MOST ? MN_SCORE_MOST : sum < -MN_SCORE_MOST ? -MN_SCORE_MOST : sum;
    to[n++] = (mn_weight){ (float)back, 1, sum };
  }
  mn_weights_finish(to, n, N);
}

void mn_softmax_weights(const mn_softmax *s) {
  const mn_call *c = s->c;
  int t = c->t1 - 1, N = c->out[0].shape[3];
  mn_weight *to = (mn_weight *)(void *)c->out[0].data;
  for (int b = 0; b < s->B; b++) {
    int start = start_of(c, s->B, t, b), low = start < 0 ? 0 : s->M + start;
    if (low < s->M + t - s->window) low = s->M + t - s->window;
    for (int h = 0; h < s->H; h++, to += N) one_head(s, t, b, h, low, start < 0, to, N);
  }
}
