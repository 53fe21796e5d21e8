/* rmt.c -- a recurrent memory transformer over a sequence (Bulatov et al. 2022): segments of S tokens between m read
** rows and m write rows, all of them the memory; the top layer's write rows are the memory of the next segment.
** Read rows see each other, a token sees the read rows and the tokens up to itself, write rows see everything.
**
** The segments of all environments pass through the layers together, one of each environment at a time.  Token by token,
** the keys and values of the running segment suffice, so acting costs one row per step, and m more where a segment begins
** or ends.  Backward runs each segment again from its memory, so little is saved. */
#include <string.h>
#include "attention/rmt_segments.h"

enum { IN_MEM = RMT_INPUTS };
enum { OUT_Y, OUT_KEPT, OUT_PACKED };

static int shape(mn_call *c) {
  mn_segments s;
  if (mn_segments_open(&s, c, "rmt")) return -1;
  c->out[OUT_KEPT].shape[0] = (int)s.kept;
  c->out[OUT_PACKED].shape[0] = (int)mn_layers_panels(&s.layers);
  return 0;
}

/* Rows of one segment of every environment that has one; x: where the rows' input goes. */
static int lay_out(const mn_segments *s, const mn_piece *piece, int pieces, const bool *writes, const float *e,
                   const float *kept, mn_rows *part, float *x) {
  int D = s->layers.D, rows = 0;
  size_t row = (size_t)D * sizeof *x, memory = (size_t)s->M * row;
  for (int i = 0; i < pieces; i++) {
    const mn_piece *p = &piece[i];
    const float *read = mn_memory(s, kept, p->b, p->full, p->reset);
    int reads = p->before ? 0 : s->M, first = rows;
    if (reads) memcpy(x + (long)rows * D, read, memory);
    rows += reads;
    for (int k = 0; k < p->n; k++, rows++) memcpy(x + (long)rows * D, e + ((long)(p->t + k) * s->B + p->b) * D, row);
    if (writes[i]) memcpy(x + (long)rows * D, read, memory), rows += s->M;
    part[i] = (mn_rows){ .b = p->b, .row = first, .n = rows - first,
                         .slot = reads ? 0 : s->M + p->before, .tokens = p->before + p->n };
  }
  return rows;
}

/* Room for the lists of one round, and of the pieces of a whole call. */
typedef struct lists { mn_cursor *at; mn_rows *part; bool *writes; mn_piece *piece; } lists;

static lists lists_of(mn_ctx *mn, int B, long pieces) {
  long each = sizeof(mn_cursor) + sizeof(mn_rows) + sizeof(int);
  lists l = { .at = (mn_cursor *)mn_scratch(mn, 3, (B * each + pieces * (long)sizeof(mn_piece)) / 4 + 1) };
  l.part = (mn_rows *)(l.at + B);
  l.piece = (mn_piece *)(l.part + B);
  l.writes = (bool *)(l.piece + pieces);
  return l;
}

static void forward(mn_call *c) {
  mn_segments s;
  mn_segments_open(&s, c, "rmt");
  const mn_layers *m = &s.layers;
  long D = m->D;
  const float *e = c->in[RMT_E].data, *mem = c->in[IN_MEM].data;
  float *y = c->out[OUT_Y].data, *kept = c->out[OUT_KEPT].data, *kv = kept + s.kept - s.kv;
  lists l = lists_of(c->ctx, s.B, s.B);
  if (c->t0 == 0) {
    mn_layers_pack(m, c->out[OUT_PACKED].data);
    memset(kept, 0, (size_t)s.kept * sizeof *kept);
    for (int b = 0; b < s.B; b++)
      memcpy(kept + mn_memory_at(&s, b, 0), mem ? mem + mn_memory_at(&s, b, 0) : s.mem0, (size_t)(s.M * D) * sizeof *kept);
  }
  for (int b = 0; b < s.B; b++) {
    l.at[b] = (mn_cursor){ 0 };
    while (mn_next_piece(&s, &l.at[b], b, c->t0, &l.piece[0])) continue;
  }
  for (;;) {
    int pieces = 0, most = 0;
    for (int b = 0; b < s.B; b++)
      if (mn_next_piece(&s, &l.at[b], b, c->t1, &l.piece[pieces])) {
        most += 2 * s.M + l.piece[pieces].n;
        l.writes[pieces] = l.piece[pieces].ends;
        pieces++;
      }
    if (!pieces) break;
    float *acts = mn_scratch(c->ctx, 0, mn_layers_acts(m, most));
    for (int i = 0; i < pieces; i++)
      for (int layer = 0; l.piece[i].before == 0 && layer < m->L; layer++)
        memset(kv + mn_kv_at(m, layer, l.piece[i].b), 0, (size_t)(2 * m->slots * m->A) * sizeof *kv);
    int rows = lay_out(&s, l.piece, pieces, l.writes, e, kept, l.part, acts);
    const float *out = mn_layers_forward(m, c->out[OUT_PACKED].data, rows, l.part, pieces, kv, acts);
    for (int i = 0; i < pieces; i++) {
      const mn_piece *p = &l.piece[i];
      const float *from = out + (l.part[i].row + (p->before ? 0 : s.M)) * D;
      for (int k = 0; k < p->n; k++, from += D)
        memcpy(y + ((long)(p->t + k) * s.B + p->b) * D, from, (size_t)D * sizeof *y);
      if (l.writes[i]) memcpy(kept + mn_memory_at(&s, p->b, p->full + 1), from, (size_t)(s.M * D) * sizeof *kept);
    }
  }
}

/* ---- backward ---- */

static void add_to(float *to, const float *from, long n) { for (long i = 0; i < n; i++) to[i] += from[i]; }

/* Gradients on their way from segment to segment. */
typedef struct back {
  const mn_segments *s;
  const float *dy, *dkept;      /* may be NULL */
  float *de, *dmem0;            /* may be NULL */
  float *carry;                 /* [B,M,D]: of the memory that an environment's next segment read */
  bool *carries;                /* [B]: is there such a segment? */
} back;

/* The gradient of the rows' output, for one segment of some environments. */
static void gather_grads(const back *k, const mn_piece *piece, int pieces, const mn_rows *part, const bool *writes, float *dx) {
  const mn_segments *s = k->s;
  long D = s->layers.D, memory = s->M * D;
  for (int i = 0; i < pieces; i++) {
    const mn_piece *p = &piece[i];
    float *to = dx + part[i].row * D;
    memset(to, 0, (size_t)(part[i].n * D) * sizeof *to);
    to += memory;
    for (int j = 0; k->dy && j < p->n; j++)
      memcpy(to + j * D, k->dy + ((long)(p->t + j) * s->B + p->b) * D, (size_t)D * sizeof *to);
    to += p->n * D;
    if (!writes[i]) continue;
    if (k->carries[p->b]) add_to(to, k->carry + mn_memory_at(s, p->b, 0), memory);
    if (k->dkept) add_to(to, k->dkept + mn_memory_at(s, p->b, p->full + 1), memory);
  }
}

/* The gradient of the rows' input, on to tokens and memories. */
static void scatter_grads(const back *k, const mn_piece *piece, int pieces, const mn_rows *part, const bool *writes,
                          const float *dx) {
  const mn_segments *s = k->s;
  long D = s->layers.D, memory = s->M * D;
  for (int i = 0; i < pieces; i++) {
    const mn_piece *p = &piece[i];
    const float *read = dx + part[i].row * D, *token = read + memory;
    float *to = p->reset ? k->dmem0 : k->carry + mn_memory_at(s, p->b, 0);
    for (int j = 0; k->de && j < p->n; j++)
      memcpy(k->de + ((long)(p->t + j) * s->B + p->b) * D, token + j * D, (size_t)D * sizeof *dx);
    if (to && !p->reset) memset(to, 0, (size_t)memory * sizeof *to);
    if (to) add_to(to, read, memory);
    if (to && writes[i]) add_to(to, token + p->n * D, memory);
    k->carries[p->b] = !p->reset;
  }
}

static void backward(mn_call *c) {
  mn_segments s;
  mn_segments_open(&s, c, "rmt");
  const mn_layers *m = &s.layers;
  long D = m->D, one = s.M * D, BT = (long)s.B * s.T;
  int most = s.B * m->slots, rounds = 0;
  const float *kept = c->out[OUT_KEPT].data;
  float *dparams = c->in[RMT_PARAMS].grad, *dmem = c->in[IN_MEM].grad;
  lists l = lists_of(c->ctx, s.B, BT + 3L * s.B);          /* piece r of environment b is at [b*T + r]; then room for a round */
  mn_piece *round = l.piece + BT;
  int *count = (int *)(round + s.B);
  long acts = mn_layers_acts(m, most);
  float *room = mn_scratch(c->ctx, 0, acts + most * D + 2 * s.kv + s.memory), *dx = room + acts, *kv = dx + most * D;
  float *dkv = kv + s.kv;
  back k = { &s, c->out[OUT_Y].grad, c->out[OUT_KEPT].grad, c->in[RMT_E].grad, c->in[RMT_MEM0].grad, dkv + s.kv,
             (bool *)(count + s.B) };
  if (dparams) memset(dparams, 0, (size_t)c->in[RMT_PARAMS].n * sizeof *dparams);
  if (k.dmem0) memset(k.dmem0, 0, (size_t)one * sizeof *k.dmem0);
  for (int b = 0; b < s.B; b++) {
    mn_cursor at = { 0 };
    for (count[b] = 0; mn_next_piece(&s, &at, b, s.T, &l.piece[(long)b * s.T + count[b]]); count[b]++) continue;
    rounds = count[b] > rounds ? count[b] : rounds;
    k.carries[b] = false;
  }
  for (int r = rounds - 1; r >= 0; r--) {
    int pieces = 0;
    memset(dkv, 0, (size_t)s.kv * sizeof *dkv);
    for (int b = 0; b < s.B; b++) {
      if (r >= count[b]) continue;
      mn_piece *p = &round[pieces];
      *p = l.piece[(long)b * s.T + r];
      l.writes[pieces++] = p->ends && (k.carries[b] || k.dkept);
      for (int layer = 0; k.dkept && r == count[b] - 1 && layer < m->L; layer++)     /* what is in kv at the end */
        memcpy(dkv + mn_kv_at(m, layer, b), k.dkept + s.kept - s.kv + mn_kv_at(m, layer, b),
               (size_t)(2 * m->slots * m->A) * sizeof *dkv);
    }
    int rows = lay_out(&s, round, pieces, l.writes, c->in[RMT_E].data, kept, l.part, room);
    mn_layers_forward(m, c->out[OUT_PACKED].data, rows, l.part, pieces, kv, room);
    gather_grads(&k, round, pieces, l.part, l.writes, dx);
    mn_layers_backward(m, rows, l.part, pieces, kv, dkv, room, dx, dparams);
    scatter_grads(&k, round, pieces, l.part, l.writes, dx);
  }
  for (int b = 0; b < s.B; b++) {                          /* of the memory at the start */
    float *to = dmem ? dmem + b * one : c->in[IN_MEM].data ? NULL : k.dmem0;
    if (dmem) memset(to, 0, (size_t)one * sizeof *to);
    if (to && k.carries[b]) add_to(to, k.carry + b * one, one);
    if (to && k.dkept) add_to(to, k.dkept + b * one, one);
  }
}

const mn_op mn_op_rmt = {
  .sig = "e[T,B,D] params[L,P] mem0[M,D] done?[T,B]:bit mem?[B,M,D] -> y[T,B,D] kept[?] ~~packed[?]" RMT_OPTIONS,
  .doc = "recurrent memory transformer (Bulatov et al. 2022). A segment's memory is its write rows at the top layer; params: as struct mn_layer_place",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
