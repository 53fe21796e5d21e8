/* rmt_segments.c -- see rmt_segments.h. */
#include "rmt_segments.h"

int mn_segments_open(mn_segments *s, const mn_call *c, const char *op) {
  double H = OPT(c, 0), dh = OPT(c, 1), F = OPT(c, 2), S = OPT(c, 3);
  const char *names[] = { "heads", "d_head", "d_ffn", "segment" };
  for (int i = 0; i < 4; i++)
    if (!(OPT(c, i) >= 1 && OPT(c, i) <= 1e6 && OPT(c, i) == (int)OPT(c, i)))
      return mn_fail(c->ctx, "%s: %s is %g, expected a whole number from 1 to 1e6", op, names[i], OPT(c, i));
  if (H * dh > 1e6) return mn_fail(c->ctx, "%s: heads x d_head is %g, expected at most 1e6", op, H * dh);
  *s = (mn_segments){ .T = DIM(c, 'T'), .B = DIM(c, 'B'), .S = (int)S, .M = DIM(c, 'M') };
  int longest = s->S < s->T ? s->S : s->T;
  s->layers = (mn_layers){ .ctx = c->ctx, .L = DIM(c, 'L'), .D = DIM(c, 'D'), .H = (int)H, .A = (int)(H * dh), .F = (int)F,
    .flow = (int)OPT(c, 4), .eps = (float)OPT(c, 5), .reads = s->M, .slots = 2 * s->M + longest, .batch = s->B,
    .params = c->in[RMT_PARAMS].data };
  s->memory = (long)s->B * s->M * s->layers.D;
  s->kv = mn_kv_at(&s->layers, s->layers.L, 0);
  s->kept = (1 + s->T / s->S) * s->memory + s->kv;
  s->done = c->in[RMT_DONE].u8;
  s->mem0 = c->in[RMT_MEM0].data;
  long P = mn_layer_places(&s->layers).end;
  if (DIM(c, 'P') != P) return mn_fail(c->ctx, "%s: axis 1 (P) of params is %d, expected %ld", op, DIM(c, 'P'), P);
  const long panels = mn_layers_panels(&s->layers);
  if (panels > INT32_MAX) return mn_fail(c->ctx, "%s: packed weights have %ld values, expected at most %d", op, panels, INT32_MAX);
  if (s->kept > INT32_MAX) return mn_fail(c->ctx, "%s: keys and values have %ld values, expected at most %d", op, s->kept, INT32_MAX);
  return 0;
}

static bool starts_episode(const mn_segments *s, int t, int b) { return s->done && s->done[(long)t * s->B + b]; }

bool mn_next_piece(const mn_segments *s, mn_cursor *at, int b, int limit, mn_piece *p) {
  if (at->t >= limit) return false;
  bool reset = starts_episode(s, at->t, b);
  if (reset || at->tokens == 0) at->tokens = 0, at->reset = reset;
  int end = at->t + s->S - at->tokens < limit ? at->t + s->S - at->tokens : limit;
  for (int t = at->t + 1; t < end; t++) if (starts_episode(s, t, b)) end = t;
  *p = (mn_piece){ .b = b, .t = at->t, .n = end - at->t, .before = at->tokens, .full = at->full, .reset = at->reset,
                   .ends = at->tokens + end - at->t == s->S };
  at->t = end;
  at->tokens = p->ends ? 0 : at->tokens + p->n;
  at->full += p->ends;
  return true;
}
