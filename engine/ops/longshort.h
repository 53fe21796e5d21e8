/* longshort.h -- which tokens and chunks a row of Transformer-LS sees: shared by longshort_attention and
** longshort_weights. */
#ifndef MN_LONGSHORT_H
#define MN_LONGSHORT_H
#include "attention/episode_attention.h"

#define LONGSHORT_INPUTS EPISODE_INPUTS \
  "p[T,B,H,R] mk[B,S,H,D] mv[B,S,H,D] mp[B,J,H,R] short[B,2,W,H,D] weight[E] bias[E]"
#define LONGSHORT_OPTIONS " | window=1 eps=1e-5"

enum { LS_P = EP_POS + 1, LS_MK, LS_MV, LS_MP, LS_SHORT, LS_WEIGHT, LS_BIAS, LS_INPUTS };

typedef struct mn_longshort {
  int T, B, H, D, E, R, S, W, C, window, chunk;
  float eps;
  const float *chunks;         /* [B,2,C,H,D]: those that were filled in this call */
  float *dchunks;
} mn_longshort;

/* `chunks` are left to the op. */
static inline mn_longshort mn_longshort_of(const mn_call *c) {
  mn_longshort s = { .T = DIM(c, 'T'), .B = DIM(c, 'B'), .H = DIM(c, 'H'), .D = DIM(c, 'D'), .R = DIM(c, 'R'), .S = DIM(c, 'S'),
                     .W = DIM(c, 'W'), .window = (int)OPT(c, 0), .chunk = DIM(c, 'J'), .eps = (float)OPT(c, 1) };
  s.E = s.H * s.D;
  s.C = (s.T + s.chunk - 1) / s.chunk * s.R;
  return s;
}

static inline int mn_longshort_check(const mn_call *c, const char *op) {
  double window = OPT(c, 0);
  if (!(window >= 1 && window < 1 << 30) || window != (int)window)
    return mn_fail(c->ctx, "%s: window is %g, expected a whole number from 1 to 2^30 - 1", op, window);
  mn_longshort s = mn_longshort_of(c);
  int need = s.window > s.chunk ? s.window - 1 : s.chunk - 1, E = DIM(c, 'E');
  if (s.S < need)
    return mn_fail(c->ctx, "%s: axis 1 (S) of mk is %d, expected at least %d for window and chunk", op, s.S, need);
  if (s.W % s.R)
    return mn_fail(c->ctx, "%s: axis 2 (W) of short is %d, expected a multiple of %d (R)", op, s.W, s.R);
  if (E != s.E) return mn_fail(c->ctx, "%s: axis 0 (E) of weight is %d, expected H x D = %d", op, E, s.E);
  return 0;
}

/* ---- a window, and the chunks before ---- */

static inline void mn_longshort_keys(const mn_episode *e, int b, int h, mn_keys *to) {
  const mn_longshort *s = e->op;
  const mn_call *c = e->c;
  const mn_arg *old = &c->in[LS_SHORT];
  long at = (long)b * 2 * s->C * s->E + h * s->D, value = (long)s->C * s->E;
  long old_at = (long)b * 2 * s->W * s->E + h * s->D, old_value = (long)s->W * s->E;
  to[0] = mn_episode_tokens(c, b, h, LS_MK, 0);
  to[1] = (mn_keys){ .k = s->chunks + at, .v = s->chunks + at + value,
                     .old_k = old->data + old_at, .old_v = old->data + old_at + old_value,
                     .step = s->E, .old_step = s->E, .rows = s->C, .slots = s->W };
  if (s->dchunks) to[1].dk = s->dchunks + at, to[1].dv = s->dchunks + at + value;
  if (old->grad) to[1].dold_k = old->grad + old_at, to[1].dold_v = old->grad + old_at + old_value;
}

static inline void mn_longshort_sees(const mn_episode *e, int h, int P, mn_seen *to) {
  const mn_longshort *s = e->op;
  int full = P / s->chunk, kept = s->W / s->R, chunks = full < kept ? full : kept, n = P + 1 < s->window ? P + 1 : s->window;
  (void)h;
  if (P < 0) chunks = n = 0;
  to[0] = (mn_seen){ 1, { (full - chunks) * s->R, chunks * s->R, 1 } };
  to[1] = (mn_seen){ 0, { P - n + 1, n, 1 } };
}

/* Chunk u ends in row u*c + c-1 + base, and is number u + (c-1 + base)/c, rounded down. */
static inline int mn_longshort_base(const mn_episode *e, int of, int base_of_tokens) {
  const mn_longshort *s = e->op;
  if (!of) return base_of_tokens;
  int x = s->chunk - 1 + base_of_tokens;
  return (x >= 0 ? x / s->chunk : -((-x + s->chunk - 1) / s->chunk)) * s->R;
}

static inline mn_episode mn_longshort_episode(const mn_call *c, const mn_longshort *s) {
  return (mn_episode){ .c = c, .op = s, .n_keys = 2, .n_seen = 2, .stride = 1, .most = (long)s->W + s->window + 2 * s->R + 2 * MN_TILE,
                       .keys = mn_longshort_keys, .sees = mn_longshort_sees, .base = mn_longshort_base };
}

#endif
