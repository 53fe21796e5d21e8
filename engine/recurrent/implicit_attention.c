/* implicit_attention.c -- computes which past steps a recurrent memory reads: goes back step by step, multiplies the query
** with each key, and applies the memory's decay.  lua/mneme/models/implicit_attention.lua explains the rules; their loops are
** in C because a page drawn sixty times a second may go back over a thousand steps of many heads.  Sums are in double. */
#include "mneme.h"
#include "op.h"
#include <math.h>
#include <string.h>

/* One head's numbers at a step; NULL where they were not probed. */
static const float *at(const mn_trail *t, int step) { return t && t->steps[step] ? t->steps[step] + t->from : NULL; }

static double dot(const float *a, const float *b, int n) {
  double sum = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
  return sum;
}

/* What is left of a query where keep is kept of each channel, or of all. */
static double fade(float *u, const float *keep, int n_keep, int K) {
  double rest = 0;
  MN_PRAGMA(omp simd reduction(+:rest))
  for (int i = 0; i < K; i++) {
    double x = (double)u[i] * (double)keep[n_keep == 1 ? 0 : i];
    u[i] = (float)x;
    rest += fabs(x);
  }
  return rest;
}

/* A step of the query's way back, over n x m channels, of which keys (p) and gates (f) may be products of two factors:
** returns what it reads there; unless what is kept is given apart, it forgets, and `left` is what is left of it. */
static double meet(float *u, const float *k, const float *p, const float *g, const float *f, int n, int m, bool apart, double *left) {
  double read = 0, rest = 0;
  for (int a = 0; a < m; a++) {
    float *query = u + a * n;
    const float *keys = p ? k : k + a * n, *gates = !g ? NULL : f ? g : g + a * n;
    double key = p ? (double)p[a] : 1, gate = f ? (double)f[a] : 1;
    if (!g) {
      read += key * dot(query, keys, n);
      continue;
    }
    if (apart) {
      MN_PRAGMA(omp simd reduction(+:read))
      for (int b = 0; b < n; b++) read += (double)query[b] * gate * (double)gates[b] * key * (double)keys[b];
      continue;
    }
    MN_PRAGMA(omp simd reduction(+:read, rest))
    for (int b = 0; b < n; b++) {
      double x = (double)query[b], forget = gate * (double)gates[b];
      read += x * forget * key * (double)keys[b];
      x *= 1 - forget;
      query[b] = (float)x;
      rest += fabs(x);
    }
  }
  *left = g && !apart ? rest : INFINITY;
  return read;
}

/* How much of a value that is written now is let in at a step, and then comes through: of one channel, or the mean of
** all V.  `reach` [V] is what comes through of what is written earlier; changed. */
static double let_through(const float *gates, const float *keep, bool apart, float *reach, int V, int channel) {
  double through = 0;
  for (int d = 0; d < V; d++) {
    double gate = gates ? (double)gates[d] : 1, kept = keep ? (double)keep[d] : apart || !gates ? 1 : 1 - gate;
    if (channel < 0 || channel == d) through += (double)reach[d] * gate;
    reach[d] = (float)((double)reach[d] * kept);
  }
  return channel < 0 ? through / V : through;
}

/* The weights of a gated memory: w [steps] of the query u [K], which is used up, as `reach` [V] is; trails that are
** NULL were not probed; after each step u is `shrink` times as long.  channel < 0: the mean over V.  A query of which less than `gone` is left reads nothing.
** Returns how many steps at the beginning are not known. */
int mn_recall_gated(int steps, const mn_trail *k, const mn_trail *p_k, const mn_recall_gates *gates, const mn_trail *shrink,
                    int channel, float *u, int K, float *reach, double gone, float *w) {
  const mn_trail *gamma = gates->write_k, *p_gamma = gamma ? gates->p_write_k : NULL, *beta = gates->write_v, *keep_k = gates->keep_k;
  int n = p_gamma ? gamma->n : k->n, m = p_gamma ? p_gamma->n : p_k ? p_k->n : 1;
  int V = beta ? beta->n : gates->keep_v ? gates->keep_v->n : 1;
  double start = 0, left;
  for (int i = 0; i < K; i++) start += fabs((double)u[i]);
  for (int d = 0; d < V; d++) reach[d] = 1;
  memset(w, 0, (size_t)steps * sizeof *w);
  for (int j = steps - 1; j >= 0; j--) {
    const float *keys = at(k, j);
    if (!keys) return j + 1;
    double read = meet(u, keys, at(p_k, j), at(gamma, j), at(p_gamma, j), n, m, gates->apart, &left);
    if (at(keep_k, j)) left = fade(u, at(keep_k, j), keep_k->n, K);
    const float *by = at(shrink, j);
    for (int i = 0; by && i < K; i++) u[i] *= by[0];
    w[j] = (float)(read * let_through(at(beta, j), at(gates->keep_v, j), gates->apart, reach, V, V == 1 ? -1 : channel));
    if (left < gone * start) break;
  }
  return 0;
}

/* 1 over a key's length (unit 1) or sum (2); 1 (0). */
static double unit_of(int unit, const float *x, int n) {
  double s = 1;
  if (unit == 1) s = sqrt(dot(x, x, n));
  if (unit == 2) for (int i = s = 0; i < n; i++) s += (double)x[i];
  return s > 0 ? 1 / s : 0;
}

/* The weights of a memory that takes out what a key holds before it writes, C = kept (C - write C k k^T) + write v k^T,
** where `kept_first`; else only what was there is kept, not what is taken out of it.  kept, write [steps] are numbers;
** keys are of length 1 (unit 1), of sum 1 (2) or as they are (0).  u [K] is the query, used up; pair [K] is scratch.
** Returns how many steps at the beginning are not known. */
int mn_recall_corrected(int steps, const mn_trail *k, const mn_trail *p_k, const double *kept, const double *write,
                        bool kept_first, int unit, float *u, int K, float *pair, float *w) {
  memset(w, 0, (size_t)steps * sizeof *w);
  for (int j = steps - 1; j >= 0; j--) {
    const float *keys = at(k, j), *p = at(p_k, j);
    if (!keys) return j + 1;
    for (int a = 0; p && a < p_k->n; a++)
      for (int b = 0; b < k->n; b++) pair[a * k->n + b] = p[a] * keys[b];
    if (p) keys = pair;
    double scale = unit_of(unit, keys, K), read = dot(u, keys, K) * scale;
    double out = write[j] * read * scale * (kept_first ? kept[j] : 1);
    MN_PRAGMA(omp simd)
    for (int i = 0; i < K; i++) u[i] = (float)(kept[j] * (double)u[i] - out * (double)keys[i]);
    w[j] = (float)(write[j] * read);
  }
  return 0;
}

/* The weights of a memory of which each channel keeps a part: with `back` and `out`, u.back is taken along `out` besides;
** with `first` [K] the newest step is read by it, and the memory before it.  Where the head's probes are NULL at a step it
** is not known.  u [K] is the query, used up; w [steps].  Returns how many steps at the beginning are not known. */
int mn_recall_kept(int steps, const mn_trail *key, const mn_trail *keep, const mn_trail *back, const mn_trail *out,
                   const float *first, float *u, int K, float *w) {
  memset(w, 0, (size_t)steps * sizeof *w);
  for (int j = steps - 1; j >= 0; j--) {
    const float *keys = at(key, j), *kept = at(keep, j), *taken = at(back, j), *along = at(out, j);
    if (!keys || !kept || (back && (!taken || !along))) return j + 1;
    if (first && j == steps - 1) {
      double read = 0;
      for (int i = 0; i < K; i++) read += (double)u[i] * (double)first[i] * (double)keys[i];
      w[j] = (float)read;
      continue;
    }
    w[j] = (float)dot(u, keys, K);
    double much = back ? dot(u, taken, K) : 0;
    if (!back) along = keys;
    MN_PRAGMA(omp simd)
    for (int i = 0; i < K; i++) u[i] = (float)((double)kept[i] * (double)u[i] - much * (double)along[i]);
  }
  return 0;
}
