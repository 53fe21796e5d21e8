/* window_attention.c -- causal attention to a window of one's episode and to its first positions.
** Longformer (Beltagy et al. 2020, section 3.1), step by step: of its two kinds of rows, `after` are those that
** look at a window and at the first ones, `first` those few that look at all before them. */
#include "../episode.h"

typedef struct setting { int window, dilation, globals; bool first; } setting;

static setting setting_of(const mn_call *c) {
  return (setting){ (int)OPT(c, 0), (int)OPT(c, 1), (int)OPT(c, 2), OPT(c, 3) != 0 };
}

static int whole(mn_call *c, const char *name, double x, int least) {
  if (x >= least && x < 1 << 30 && x == (int)x) return 0;
  return mn_fail(c->ctx, "window_attention: %s is %g, expected a whole number of at least %d", name, x, least);
}

static int shape(mn_call *c) {
  if (whole(c, "window", OPT(c, 0), 1) || whole(c, "dilation", OPT(c, 1), 1) || whole(c, "globals", OPT(c, 2), 0)) return -1;
  setting s = setting_of(c);
  double back = (double)(s.window - 1) * s.dilation, need = s.globals + (s.first ? 0 : back < 1 ? 1 : back);
  if (DIM(c, 'S') < need)
    return mn_fail(c->ctx, "window_attention: axis 1 (S) of mk is %d, expected at least %g", DIM(c, 'S'), need);
  return 0;
}

static void keys(const mn_episode *e, int b, int h, mn_keys *to) {
  const setting *s = e->op;
  int S = e->c->in[EP_POS + 1].shape[1];
  *to = mn_episode_tokens(e->c, b, h, EP_POS + 1, s->first ? S : s->globals);
}

static void sees(const mn_episode *e, int h, int P, mn_seen *to) {
  const setting *s = e->op;
  int g = s->globals;
  (void)h;
  to[0] = to[1] = (mn_seen){ 0, { 0, 0, 1 } };
  if (P < 0 || (P < g) != s->first) return;
  if (s->first) { to[0].at.n = P + 1; return; }
  int most = (P - g) / s->dilation + 1, n = s->window < most ? s->window : most;
  to[0].at.n = g;
  to[1].at = (mn_range){ P - (n - 1) * s->dilation, n, s->dilation };
}

static mn_episode episode_of(const mn_call *c, const setting *s) {
  long most = s->first ? s->globals : s->globals + s->window;
  return (mn_episode){ .c = c, .op = s, .n_keys = 1, .n_seen = 2, .stride = s->first ? 1 : s->dilation, .most = most + 2 * MN_TILE,
                       .keys = keys, .sees = sees };
}

EPISODE_PASSES

const mn_op mn_op_window_attention = {
  .sig = EPISODE_INPUTS "mk[B,S,H,D] mv[B,S,H,D] -> y[T,B,H,D] | window=1 dilation=1 globals=0 rows=after|first",
  .doc = "softmax(q.k / sqrt(D)) v by position in the episode (see position, slots).  rows=after: from position `globals` "
         "on, over the first `globals` and those `window` that lie 0, dilation, ... before; rows=first: the first "
         "`globals`, over all up to their own; the other rows are 0 (Longformer: Beltagy et al. 2020, section 3.1)",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
