/* rmt_memory.c -- the memory that rmt would pass on if its running segments ended now: their write rows, on the keys
** and values that rmt saved.  By rows it runs only when its output is read. */
#include <string.h>
#include "attention/rmt_segments.h"

enum { IN_KEPT = RMT_INPUTS, INPUTS };
enum { OUT_MEM, OUT_PACKED };

static int shape(mn_call *c) {
  mn_segments s;
  if (mn_segments_open(&s, c, "rmt_memory")) return -1;
  if (c->in[IN_KEPT].n != s.kept)
    return mn_fail(c->ctx, "rmt_memory: axis 0 of kept is %ld, expected %ld", c->in[IN_KEPT].n, s.kept);
  c->out[OUT_MEM].shape[0] = s.B;
  c->out[OUT_PACKED].shape[0] = (int)mn_layers_panels(&s.layers);
  return 0;
}

typedef struct running {       /* environments with an unfinished segment, as rows of the layers */
  mn_cursor *at;               /* of every environment */
  mn_rows *part;
  int parts, rows;
  float *kv, *dkv, *dx, *acts;
} running;

/* Where every environment is at row c->t1, and the write rows of those whose segment is not full, gone through the layers. */
static running write_rows(const mn_segments *s, const mn_call *c) {
  const mn_layers *m = &s->layers;
  long one = (long)s->M * m->D;
  const float *kept = c->in[IN_KEPT].data;
  running w = { .at = (mn_cursor *)mn_scratch(c->ctx, 3, s->B * (long)(sizeof(mn_cursor) + sizeof(mn_rows)) / 4) };
  w.part = (mn_rows *)(w.at + s->B);
  w.kv = mn_scratch(c->ctx, 0, 2 * s->kv + s->memory + mn_layers_acts(m, s->B * s->M));
  w.dkv = w.kv + s->kv;
  w.dx = w.dkv + s->kv;
  w.acts = w.dx + s->memory;
  for (int b = 0; b < s->B; b++) {
    mn_cursor *at = &w.at[b];
    mn_piece p;
    *at = (mn_cursor){ 0 };
    while (mn_next_piece(s, at, b, c->t1, &p)) continue;
    if (!at->tokens) continue;
    memcpy(w.acts + w.rows * (long)m->D, mn_memory(s, kept, b, at->full, at->reset), (size_t)one * sizeof *w.acts);
    w.part[w.parts++] = (mn_rows){ .b = b, .row = w.rows, .n = s->M, .slot = s->M + at->tokens, .tokens = at->tokens };
    w.rows += s->M;
  }
  if (!w.parts) return w;
  memcpy(w.kv, kept + s->kept - s->kv, (size_t)s->kv * sizeof *w.kv);
  float *out = mn_layers_forward(m, c->out[OUT_PACKED].data, w.rows, w.part, w.parts, w.kv, w.acts);
  memcpy(w.dx, out, (size_t)(w.rows * (long)m->D) * sizeof *out);
  return w;
}

static void forward(mn_call *c) {
  mn_segments s;
  mn_segments_open(&s, c, "rmt_memory");
  mn_layers_pack(&s.layers, c->out[OUT_PACKED].data);
  running w = write_rows(&s, c);
  long one = (long)s.M * s.layers.D;
  const float *written = w.dx;
  for (int b = 0; b < s.B; b++) {
    const float *from = w.at[b].tokens ? written : mn_memory(&s, c->in[IN_KEPT].data, b, w.at[b].full, false);
    memcpy(c->out[OUT_MEM].data + b * one, from, (size_t)one * sizeof *from);
    if (w.at[b].tokens) written += one;
  }
}

static void backward(mn_call *c) {
  mn_segments s;
  mn_segments_open(&s, c, "rmt_memory");
  running w = write_rows(&s, c);
  long one = (long)s.M * s.layers.D;
  const float *dmem = c->out[OUT_MEM].grad;
  float *dkept = c->in[IN_KEPT].grad, *dmem0 = c->in[RMT_MEM0].grad;
  for (int i = 0; i < INPUTS; i++)
    if (c->in[i].grad) memset(c->in[i].grad, 0, (size_t)c->in[i].n * sizeof(float));
  for (int i = 0; i < w.parts; i++) memcpy(w.dx + i * one, dmem + w.part[i].b * one, (size_t)one * sizeof *dmem);
  memset(w.dkv, 0, (size_t)s.kv * sizeof *w.dkv);
  if (w.parts)
    mn_layers_backward(&s.layers, w.rows, w.part, w.parts, w.kv, w.dkv, w.acts, w.dx, c->in[RMT_PARAMS].grad);
  if (dkept) memcpy(dkept + s.kept - s.kv, w.dkv, (size_t)s.kv * sizeof *dkept);
  const float *dread = w.dx;
  for (int b = 0; b < s.B; b++) {
    const mn_cursor *at = &w.at[b];
    bool reset = at->tokens && at->reset;
    const float *from = at->tokens ? dread : dmem + b * one;
    float *to = reset ? dmem0 : dkept ? dkept + mn_memory_at(&s, b, at->full) : NULL;
    for (long i = 0; to && i < one; i++) to[i] += from[i];
    if (at->tokens) dread += one;
  }
}

const mn_op mn_op_rmt_memory = {
  .sig = "y[T,B,D] params[L,P] mem0[M,D] done?[T,B]:bit kept[K] -> mem'[?,M,D] ~~packed[?]" RMT_OPTIONS,
  .doc = "rmt's memory after its last row: the write rows of the current segment (Bulatov et al. 2022)",
  .time = MN_FINAL, .shape = shape, .forward = forward, .backward = backward,
};
