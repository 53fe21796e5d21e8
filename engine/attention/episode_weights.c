/* episode_weights.c -- the weights that a row of an episode_attention gives to each key. */
#include <assert.h>
#include "episode_attention.h"

static const float *key_of(const mn_keys *m, int p, int row) {
  return row >= 0 ? m->k + row * m->step : m->old_k + mn_slot(p, m->pinned, m->slots) * m->old_step;
}

static void one_head(const mn_episode *e, int t, int b, int h, mn_seen *seen, mn_weight *to, int N) {
  const mn_arg *q = &e->c->in[EP_Q], *pos = &e->c->in[EP_POS];
  int B = q->shape[1], H = q->shape[2], D = q->shape[3], P = pos->i32[(long)t * B + b], n = 0;
  const float *query = q->data + (((long)t * B + b) * H + h) * D;
  mn_keys keys[EP_KEYS];
  assert(e->n_keys <= EP_KEYS);
  if (P < 0) P = -1;
  e->keys(e, b, h, keys);
  e->sees(e, h, P, seen);
  for (int i = 0; i < e->n_seen; i++) {
    int of = seen[i].of, base = e->base ? e->base(e, of, t - P) : t - P;
    for (int k = 0; k < seen[i].at.n && n < N; k++) {
      int p = seen[i].at.from + k * seen[i].at.step;
      mn_weight *w = &to[n++];
      *w = (mn_weight){ (float)(P - p), 1, 0 };
      if (e->stands) e->stands(e, of, P, p, w);
      w->weight = mn_weight_score(D, query, key_of(&keys[of], p, p + base));
    }
  }
  mn_weights_finish(to, n, N);
}

void mn_episode_weights(const mn_episode *e) {
  const mn_call *c = e->c;
  int B = c->out[0].shape[1], H = c->out[0].shape[2], N = c->out[0].shape[3];
  mn_seen *seen = (mn_seen *)(void *)mn_scratch(c->ctx, 0, e->n_seen * (long)(sizeof *seen / sizeof(float)));
  mn_weight *to = (mn_weight *)(void *)c->out[0].data;
  for (int b = 0; b < B; b++)
    for (int h = 0; h < H; h++, to += N) one_head(e, c->t1 - 1, b, h, seen, to, N);
}
