/* causal_attention.c -- reads a call of the op `attention` and prepares its rows: see causal_attention.h. */
#include <math.h>
#include "causal_attention.h"
#include "numerics/bf16.h"

int mn_softmax_open(mn_softmax *s, const mn_call *c, const char *op) {
  *s = (mn_softmax){ .c = c, .T = DIM(c, 'T'), .B = DIM(c, 'B'), .H = DIM(c, 'H'), .K = DIM(c, 'K'), .V = DIM(c, 'V') };
  if (!c->in[SM_MK].data != !c->in[SM_MV].data)
    return mn_fail(c->ctx, "%s: %s is given without %s", op, c->in[SM_MK].data ? "mk" : "mv", c->in[SM_MK].data ? "mv" : "mk");
  if (c->in[SM_MASK].data && !c->in[SM_MK].data) return mn_fail(c->ctx, "%s: mask is given without mk and mv", op);
  if (c->in[SM_W].data && !c->in[SM_R].data) return mn_fail(c->ctx, "%s: w is given without r", op);
  s->M = c->in[SM_MK].data ? DIM(c, 'M') : 0;
  if ((double)s->M + s->T > 1 << 30) return mn_fail(c->ctx, "%s: %d carried keys and %d rows are too many", op, s->M, s->T);
  s->E = s->M + s->T;
  if (c->in[SM_R].data && DIM(c, 'F') != s->E)
    return mn_fail(c->ctx, "%s: axis 0 (F) of r is %d, expected %d: one distance for each carried key and row",
                   op, DIM(c, 'F'), s->E);
  double window = OPT(c, 0);
  if (window != floor(window)) return mn_fail(c->ctx, "%s: window is %g, expected a whole number, or -1 for all", op, window);
  s->window = window < 0 || window > s->E ? s->E : (int)window;
  s->scale = 1 / sqrtf((float)s->K);
  s->bf16 = mn_bf16_of(c->ctx);
  return 0;
}

int mn_softmax_open_shared(mn_softmax *s, mn_call *in_place, const mn_call *c, const char *op) {
  enum { Q, A, X, OLD, MASK, DONE, W, R };
  static const int place[] = { [SM_Q] = Q, [SM_K] = X, [SM_V] = A, [SM_MK] = OLD, [SM_MV] = OLD, [SM_MASK] = MASK, [SM_DONE] = DONE, [SM_W] = W, [SM_R] = R };
  *in_place = *c;
  for (int i = SM_Q; i <= SM_R; i++) in_place->in[i] = c->in[place[i]];
  in_place->in[SM_U].data = NULL;
  const int status = mn_softmax_open(s, in_place, op);
  s->shared = true;
  return status;
}

static void find_carried(const mn_softmax *s) {
  for (int b = 0; b < s->B; b++) {
    int32_t *out = s->c->out[SM_CARRIED].i32 + 2 * b;
    int first = 0;
    while (first < s->M && mn_softmax_blocked(s, first, b)) first++;
    out[0] = first;
    out[1] = 0;
    for (int j = first; j < s->M && !out[1]; j++) out[1] = mn_softmax_blocked(s, j, b);
  }
}

/* Positions in panels, the farthest first: column e holds distance E-1-e, so that keys and columns ascend
** together.  Row t meets key j at column T-1-t+j. */
static void pack_positions(const mn_softmax *s) {
  const float *r = s->c->in[SM_R].data;
  int HK = s->H * s->K, panels = mn_panels(s->E);
  MN_PARALLEL(s->c->ctx, (double)s->E * HK)
  for (int i = 0; i < s->H * panels; i++) {
    int h = i / panels, from = i % panels * MN_PANEL, n = s->E - from < MN_PANEL ? s->E - from : MN_PANEL;
    (s->bf16 ? s->bf16->pack : mn_pack_panel)(r + (long)(s->E - 1 - from) * HK + h * s->K, -HK, s->K, n, true,
                  s->c->out[SM_PACKED].data + i * mn_softmax_depth(s, s->K) * MN_PANEL);
  }
}

/* Keys and values from .. to-1, as bfloat16. */
static void halve(const mn_softmax *s, bool values, int from, int to) {
  const int carried = values ? SM_MV : SM_MK, rows = values ? SM_V : SM_K, size = values ? s->V : s->K, n = s->H * size;
  for (int j = from; j < to; j++)
    for (int b = 0; b < s->B; b++) {
      const float *x = mn_softmax_key(s, carried, rows, j, b, 0, size);
      uint16_t *half = mn_softmax_half(s, values, j, b);
      for (int d = 0; d < n; d++) half[d] = mn_to_bf16(x[d]);
    }
}

void mn_softmax_prepare(const mn_softmax *s) {
  const mn_call *c = s->c;
  int32_t *start = c->out[SM_START].i32;
  if (c->t0 == 0) find_carried(s);
  if (c->t0 == 0 && c->in[SM_R].data) pack_positions(s);
  for (int values = 0; mn_softmax_has_halves(s) && values < 2; values++) halve(s, values, c->t0 ? s->M + c->t0 : 0, s->M + c->t1);
  for (long i = (long)c->t0 * s->B; i < (long)c->t1 * s->B; i++)
    start[i] = c->in[SM_DONE].data && c->in[SM_DONE].u8[i] ? (int)(i / s->B) : i < s->B ? -1 : start[i - s->B];
}
