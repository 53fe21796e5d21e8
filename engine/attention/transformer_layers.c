/* transformer_layers.c -- forward: see transformer_layers.h. */
#include <string.h>
#include "transformer_layers.h"
#include "numerics/packed_gemm.h"
#include "numerics/activation.h"
#include "numerics/gates.h"
#include "numerics/norm.h"
#include "numerics/recurrent_cells.h"
#include "numerics/simd.h"

mn_layer_place mn_layer_places(const mn_layers *m) {
  long D = m->D, A = m->A, F = m->F, gate = m->flow == MN_GTRXL ? 6 * D * D + D : 0;
  mn_layer_place p = { 0 };
  p.qkv_bias = p.qkv + 3 * A * D;
  p.out = p.qkv_bias + 3 * A;
  p.out_bias = p.out + D * A;
  p.norm[0] = p.out_bias + D;
  p.norm[1] = p.norm[0] + 2 * D;
  p.ffn0 = p.norm[1] + 2 * D;
  p.ffn0_bias = p.ffn0 + F * D;
  p.ffn1 = p.ffn0_bias + F;
  p.ffn1_bias = p.ffn1 + D * F;
  p.gate[0] = p.ffn1_bias + D;
  p.gate[1] = p.gate[0] + gate;
  p.end = p.gate[1] + gate;
  return p;
}

/* ---- packed weights, in the order qkv, out, ffn0, ffn1, and of each gate w, u_rz, u_g ---- */

typedef struct panels { const float *qkv, *out, *ffn0, *ffn1, *w[2], *u[2], *ug[2]; } panels;

static long panel_size(int N, int K) { return (long)mn_panels(N) * MN_PANEL * K; }

static long layer_panels(const mn_layers *m) {
  int D = m->D;
  long gate = panel_size(3 * D, D) + panel_size(2 * D, D) + panel_size(D, D);
  return panel_size(3 * m->A, D) + panel_size(D, m->A) + panel_size(m->F, D) + panel_size(D, m->F)
         + (m->flow == MN_GTRXL ? 2 * gate : 0);
}

long mn_layers_panels(const mn_layers *m) { return m->L * layer_panels(m); }

static panels panels_of(const mn_layers *m, const float *all, int layer) {
  int D = m->D;
  panels p;
  p.qkv = all + layer * layer_panels(m);
  p.out = p.qkv + panel_size(3 * m->A, D);
  p.ffn0 = p.out + panel_size(D, m->A);
  p.ffn1 = p.ffn0 + panel_size(m->F, D);
  const float *at = p.ffn1 + panel_size(D, m->F);
  for (int i = 0; i < 2; i++) {
    p.w[i] = at;
    p.u[i] = p.w[i] + panel_size(3 * D, D);
    p.ug[i] = p.u[i] + panel_size(2 * D, D);
    at = p.ug[i] + panel_size(D, D);
  }
  return p;
}

void mn_layers_pack(const mn_layers *m, float *all) {
  mn_layer_place at = mn_layer_places(m);
  int D = m->D;
  for (int l = 0; l < m->L; l++) {
    const float *w = m->params + l * at.end;
    panels p = panels_of(m, all, l);
    mn_pack(m->ctx, w + at.qkv, D, 3 * m->A, true, (float *)p.qkv);
    mn_pack(m->ctx, w + at.out, m->A, D, true, (float *)p.out);
    mn_pack(m->ctx, w + at.ffn0, D, m->F, true, (float *)p.ffn0);
    mn_pack(m->ctx, w + at.ffn1, m->F, D, true, (float *)p.ffn1);
    for (int i = 0; i < 2 && m->flow == MN_GTRXL; i++) {
      const float *gate = w + at.gate[i], *u = gate + 3L * D * D;
      mn_pack(m->ctx, gate, D, 3 * D, true, (float *)p.w[i]);
      mn_pack(m->ctx, u, D, 2 * D, true, (float *)p.u[i]);
      mn_pack(m->ctx, u + 2L * D * D, D, D, true, (float *)p.ug[i]);
    }
  }
}

/* ---- activations ---- */

static long half_width(const mn_layers *m) { return 3L * m->D + 2 + (m->flow == MN_GTRXL ? 4L * m->D : 0); }
static long layer_width(const mn_layers *m) { return 2 * half_width(m) + 4L * m->A + m->F; }

long mn_layers_acts(const mn_layers *m, int rows) { return rows * (m->L * layer_width(m) + m->D); }

mn_acts mn_acts_of(const mn_layers *m, float *acts, int rows, int layer) {
  long D = (long)rows * m->D;
  float *at = acts + rows * layer_width(m) * layer;
  mn_acts a = { 0 };
  for (int i = 0; i < 2; i++) {
    mn_half *h = &a.half[i];
    h->x = at;                                    /* first, so that the output is the next layer's input */
    h->n = h->x + D;
    h->o = h->n + D;
    h->pre = h->o + D;
    h->rx = h->pre + (m->flow == MN_GTRXL ? 3 * D : 0);
    h->stats = h->rx + (m->flow == MN_GTRXL ? D : 0);
    at = h->stats + 2L * rows;
  }
  a.qkv = at;
  a.a = a.qkv + 3L * rows * m->A;
  a.hidden = a.a + (long)rows * m->A;
  a.y = acts + rows * layer_width(m) * (layer + 1);
  return a;
}

/* ---- rows ---- */

enum { SOME = 64 };                               /* rows of one piece of work */
static int some(int rows, long from) { return rows - from < SOME ? rows - (int)from : SOME; }

static void norm_rows(const mn_layers *m, int layer, int half, const float *x, float *y, float *stats, int rows) {
  const float *w = m->params + layer * mn_layer_places(m).end + mn_layer_places(m).norm[half];
  int D = m->D;
  MN_FOR(m->ctx, (long)rows * D, r, 0, rows, 1, mn_norm_row(x + r * D, w, w + D, m->eps, D, y + r * D, stats + 2 * r));
}

/* y = act(x w^T + b). */
static void dense(const mn_layers *m, int rows, int I, int O, const float *x, const float *panel, const float *b, int act,
                  float *y) {
  mn_product(m->ctx, rows, O, I, x, panel, y, O, false);
  MN_FOR(m->ctx, (long)rows * O, r, 0, rows, SOME, mn_finish(y + r * O, O, y + r * O, O, b, some(rows, r), O, act));
}

static void add_rows(const float *x, const float *o, float *y, long n) {
  for (long i = 0; i < n; i++) y[i] = x[i] + o[i];
}

/* What follows a half: its input and its result, joined as the flow says. */
static void join(const mn_layers *m, const panels *p, int layer, int half, const mn_half *h, float *y, int rows) {
  int D = m->D;
  mn_ctx *mn = m->ctx;
  if (m->flow == MN_RESIDUAL) add_rows(h->x, h->o, y, (long)rows * D);
  else if (m->flow == MN_POSTNORM) {
    add_rows(h->x, h->o, h->n, (long)rows * D);
    norm_rows(m, layer, half, h->n, y, h->stats, rows);
  } else {
    mn_layer_place at = mn_layer_places(m);
    const float *bias = m->params + layer * at.end + at.gate[half] + 6L * D * D;
    mn_product(mn, rows, 3 * D, D, h->o, p->w[half], h->pre, 3 * D, false);
    mn_product(mn, rows, 2 * D, D, h->x, p->u[half], h->pre, 3 * D, true);
    MN_FOR(mn, (long)rows * D * 4, r, 0, rows, SOME,
           mn_gate_open(h->x + r * D, bias, h->pre + r * 3 * D, h->rx + r * D, some(rows, r), D, 0, D));
    mn_product(mn, rows, D, D, h->rx, p->ug[half], h->pre + 2 * D, 3 * D, true);
    MN_FOR(mn, (long)rows * D * 4, r, 0, rows, SOME,
           mn_gate_mix(h->x + r * D, h->pre + r * 3 * D, y + r * D, some(rows, r), D, 0, D));
  }
}

/* ---- attention ---- */

void mn_layer_weights(int dh, int stride, int seen, const float *q, const float *k, float *s) {
  float scale = 1 / __builtin_sqrtf((float)dh), sum = 0;
  for (int j = 0; j < seen; j++) s[j] = scale * mn_dot(dh, q, k + (long)j * stride);
  float top = mn_vmax(s, seen);
  for (int j = 0; j < seen; j++) s[j] -= top;
  mn_vexp(s, s, seen);
  for (int j = 0; j < seen; j++) sum += s[j];
  for (int j = 0; j < seen; j++) s[j] /= sum;
}

/* One head of one environment's rows. */
static void attend(const mn_layers *m, const mn_rows *p, int head, const float *qkv, const float *kv, float *s, float *y) {
  int A = m->A, dh = A / m->H, at = head * dh;
  const float *k = kv + at, *v = k + A;
  for (int i = 0; i < p->n; i++) {
    int seen = mn_seen(m, p, p->slot + i);
    mn_layer_weights(dh, 2 * A, seen, qkv + (long)(p->row + i) * 3 * A + at, k, s);
    float *to = y + (long)(p->row + i) * A + at;
    for (int d = 0; d < dh; d += MN_LANES) {
      mn_lanes sum = { 0 };
      for (int j = 0; j < seen; j++) sum += s[j] * mn_load_n(v + (long)j * 2 * A + d, dh - d);
      mn_store_n(to + d, sum, dh - d);
    }
  }
}

static void attention(const mn_layers *m, int layer, const mn_rows *part, int parts, const mn_acts *a, float *kv) {
  int A = m->A, rows = 0;
  float *s = mn_scratch(m->ctx, 2, (long)parts * m->H * m->slots);
  for (int i = 0; i < parts; i++) {
    const mn_rows *p = &part[i];
    rows += p->n;
    for (int r = 0; r < p->n; r++)
      memcpy(kv + mn_kv_at(m, layer, p->b) + (long)(p->slot + r) * 2 * A, a->qkv + (long)(p->row + r) * 3 * A + A,
             (size_t)(2 * A) * sizeof *kv);
  }
  MN_FOR(m->ctx, (long)rows * m->slots * A, i, 0, parts * m->H, 1,
         attend(m, &part[i / m->H], (int)(i % m->H), a->qkv, kv + mn_kv_at(m, layer, part[i / m->H].b),
                s + i * m->slots, a->a));
}

/* ---- the stack ---- */

float *mn_layers_forward(const mn_layers *m, const float *all, int rows, const mn_rows *part, int parts, float *kv,
                         float *acts) {
  mn_layer_place at = mn_layer_places(m);
  bool before = m->flow != MN_POSTNORM;
  int D = m->D, closing = before ? MN_RELU : MN_NONE;
  for (int l = 0; l < m->L; l++) {
    mn_acts a = mn_acts_of(m, acts, rows, l);
    panels p = panels_of(m, all, l);
    const float *w = m->params + l * at.end;
    mn_half *h = a.half;
    if (before) norm_rows(m, l, 0, h[0].x, h[0].n, h[0].stats, rows);
    dense(m, rows, D, 3 * m->A, before ? h[0].n : h[0].x, p.qkv, w + at.qkv_bias, MN_NONE, a.qkv);
    attention(m, l, part, parts, &a, kv);
    dense(m, rows, m->A, D, a.a, p.out, w + at.out_bias, closing, h[0].o);
    join(m, &p, l, 0, &h[0], h[1].x, rows);
    if (before) norm_rows(m, l, 1, h[1].x, h[1].n, h[1].stats, rows);
    dense(m, rows, D, m->F, before ? h[1].n : h[1].x, p.ffn0, w + at.ffn0_bias, MN_RELU, a.hidden);
    dense(m, rows, m->F, D, a.hidden, p.ffn1, w + at.ffn1_bias, closing, h[1].o);
    join(m, &p, l, 1, &h[1], a.y, rows);
  }
  return acts + rows * layer_width(m) * m->L;
}
