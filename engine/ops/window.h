/* window.h -- which positions a row of Longformer sees: shared by window_attention and window_weights. */
#ifndef MN_WINDOW_H
#define MN_WINDOW_H
#include "attention/episode_attention.h"

#define WINDOW_INPUTS EPISODE_INPUTS "mk[B,S,H,D] mv[B,S,H,D]"
#define WINDOW_OPTIONS " | window=1 dilation=1 globals=0 rows=after|first"

typedef struct mn_window { int window, dilation, globals; bool first; } mn_window;

static inline mn_window mn_window_of(const mn_call *c) {
  return (mn_window){ (int)OPT(c, 0), (int)OPT(c, 1), (int)OPT(c, 2), OPT(c, 3) != 0 };
}

static inline int mn_window_whole(const mn_call *c, const char *op, const char *name, double x, int least) {
  if (x >= least && x < 1 << 30 && x == (int)x) return 0;
  return mn_fail(c->ctx, "%s: %s is %g, expected a whole number from %d to 2^30 - 1", op, name, x, least);
}

static inline int mn_window_check(const mn_call *c, const char *op) {
  if (mn_window_whole(c, op, "window", OPT(c, 0), 1) || mn_window_whole(c, op, "dilation", OPT(c, 1), 1)
      || mn_window_whole(c, op, "globals", OPT(c, 2), 0)) return -1;
  mn_window s = mn_window_of(c);
  double back = (double)(s.window - 1) * s.dilation, need = s.globals + (s.first ? 0 : back < 1 ? 1 : back);
  if (DIM(c, 'S') < need)
    return mn_fail(c->ctx, "%s: axis 1 (S) of mk is %d, expected at least %g", op, DIM(c, 'S'), need);
  return 0;
}

static inline void mn_window_keys(const mn_episode *e, int b, int h, mn_keys *to) {
  const mn_window *s = e->op;
  int S = e->c->in[EP_POS + 1].shape[1];
  *to = mn_episode_tokens(e->c, b, h, EP_POS + 1, s->first ? S : s->globals);
}

static inline void mn_window_sees(const mn_episode *e, int h, int P, mn_seen *to) {
  const mn_window *s = e->op;
  int g = s->globals;
  (void)h;
  to[0] = to[1] = (mn_seen){ 0, { 0, 0, 1 } };
  if (P < 0 || (P < g) != s->first) return;
  if (s->first) { to[0].at.n = P + 1; return; }
  int most = (P - g) / s->dilation + 1, n = s->window < most ? s->window : most;
  to[0].at.n = g;
  to[1].at = (mn_range){ P - (n - 1) * s->dilation, n, s->dilation };
}

/* How many keys a row sees at most. */
static inline int mn_window_most(const mn_window *s) { return s->first ? s->globals : s->globals + s->window; }

static inline mn_episode mn_window_episode(const mn_call *c, const mn_window *s) {
  return (mn_episode){ .c = c, .op = s, .n_keys = 1, .n_seen = 2, .stride = s->first ? 1 : s->dilation, .most = mn_window_most(s) + 2 * MN_TILE,
                       .keys = mn_window_keys, .sees = mn_window_sees };
}

#endif
