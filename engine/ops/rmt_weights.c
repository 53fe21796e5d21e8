/* rmt_weights.c -- the weights that the last row of an rmt gives to the memory tokens and the steps of its segment, in every
** layer: the row passes through the layers again, on the keys and values that rmt saved. */
#include <string.h>
#include "attention/rmt_segments.h"
#include "attention/attention_weights.h"

enum { IN_KEPT = RMT_INPUTS };

static int shape(mn_call *c) {
  mn_segments s;
  if (mn_segments_open(&s, c, "rmt_weights")) return -1;
  if (c->in[IN_KEPT].n != s.kept)
    return mn_fail(c->ctx, "rmt_weights: axis 0 of kept is %ld, expected %ld", c->in[IN_KEPT].n, s.kept);
  int seen = s.layers.slots - s.M, full[] = { 1, s.B, s.layers.L, s.layers.H, seen, 3 };
  memcpy(c->out[0].shape, full, sizeof full);
  return 0;
}

static void weigh(const mn_segments *s, const mn_rows *p, int layer, int head, const float *qkv, const float *kv, mn_weight *to) {
  const mn_layers *m = &s->layers;
  int dh = m->A / m->H, n = mn_seen(m, p, p->slot);
  for (int j = 0; j < n; j++) {
    const float *key = kv + mn_kv_at(m, layer, p->b) + (long)j * 2 * m->A + head * dh;
    to[j] = (mn_weight){ j < s->M ? 0 : (float)(p->slot - j), j < s->M ? 0 : 1, mn_weight_score(dh, qkv + head * dh, key) };
  }
  mn_weights_finish(to, n, m->slots - s->M);
}

static void forward(mn_call *c) {
  mn_segments s;
  mn_segments_open(&s, c, "rmt_weights");
  const mn_layers *m = &s.layers;
  mn_rows *part = (mn_rows *)(void *)mn_scratch(c->ctx, 3, s.B * (long)(sizeof *part / sizeof(float)));
  float *kv = mn_scratch(c->ctx, 0, s.kv + mn_layers_acts(m, s.B)), *acts = kv + s.kv;
  float *packed = mn_scratch(c->ctx, 1, mn_layers_panels(m));
  memcpy(kv, c->in[IN_KEPT].data + s.kept - s.kv, (size_t)s.kv * sizeof *kv);
  memcpy(acts, c->in[RMT_E].data + (c->t1 - 1) * (long)s.B * m->D, (size_t)s.B * (size_t)m->D * sizeof *acts);
  for (int b = 0; b < s.B; b++) {
    mn_cursor at = { 0 };
    mn_piece p = { 0 };
    while (mn_next_piece(&s, &at, b, c->t1, &p)) continue;
    int tokens = p.before + p.n;
    part[b] = (mn_rows){ .b = b, .row = b, .n = 1, .slot = s.M + tokens - 1, .tokens = tokens };
  }
  mn_layers_pack(m, packed);
  mn_layers_forward(m, packed, s.B, part, s.B, kv, acts);
  mn_weight *to = (mn_weight *)(void *)c->out[0].data;
  for (int b = 0; b < s.B; b++)
    for (int l = 0; l < m->L; l++)
      for (int h = 0; h < m->H; h++, to += m->slots - s.M)
        weigh(&s, &part[b], l, h, mn_acts_of(m, acts, s.B, l).qkv + (long)b * 3 * m->A, kv, to);
}

const mn_op mn_op_rmt_weights = {
  .sig = "e[T,B,D] params[L,P] mem0[M,D] done?[T,B]:bit kept[K] -> ~weights[1,B,?,?,?,3]" RMT_OPTIONS,
  .doc = "attention weights of the last token, as `rmt` computes them from the same inputs and `kept`. Layer by layer [1,B,L,H,N,3]: entries of steps "
      "back, number of steps (1; 0: a memory token), weight; unused entries are 0",
  .time = MN_ON_DEMAND, .shape = shape, .forward = forward,
};
