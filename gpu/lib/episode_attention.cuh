/* episode_attention.cuh -- attention to positions of the row's episode, and to lists of keys, as
** engine/attention/episode_attention.h on the CPU.  An op gives the positions that a row sees as ranges; this file finds their
** keys: that of position p is in row p + base of the sequence, or, before row 0, in a carried slot.  All ops of this kind
** use one struct, so that the kernels are compiled once, in episode_attention.cu. */
#pragma once
#include "softmax.cuh"

enum cu_episode_kind { CU_WINDOW, CU_FIRST, CU_BLOCKS_OF, CU_LONGSHORT, CU_LISTED };

struct cu_range { int of, from, n, step; };            /* positions of set `of`: 0 tokens, 1 compressed chunks */

/* Keys are numbered: compressed ones from before, those of this call, slots of tokens, rows of tokens. */
struct cu_episode : cu_attention {
  static constexpr bool XL = false, SKIPS = true;
  int kind, n_ranges, B, M;      /* M: rows of tokens, or all keys that are listed */
  const int32_t *pos, *list;     /* [T,B]; runs of blocks [H,N,R,2], or ranges [G,P,R,3] */
  int W, C, S, pinned;           /* carried compressed keys, those of this call; slots, pinned ones */
  int window, dilation, globals; /* window */
  int blocks, block;             /* blocks of that many positions */
  int chunk, per_chunk;          /* tokens, and compressed keys, of a chunk */
  int N, each;                   /* listed: rows; those that share an entry */
  bool causal, by_head;
  struct Row { int P, base; };   /* position, or -1; row t - P.  Listed: the row's number */

  __device__ __forceinline__ Row row(int i, int b, int) const {
    if (i >= t1) return { -1, 0 };
    if (kind == CU_LISTED) return { i, 0 };
    const int P = pos[(long)i * B + b];
    return { P < 0 ? -1 : P, i - (P < 0 ? -1 : P) };
  }

  static __device__ __forceinline__ int down(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
  __device__ __forceinline__ int base_of(const Row &row, int of) const {
    return of ? down(chunk - 1 + row.base, chunk) * per_chunk : row.base;
  }

  /* The r-th range that a row sees; n = 0: nothing. */
  __device__ __forceinline__ cu_range range(const Row &row, int r, int h) const {
    const int P = row.P;
    if (P < 0) return { 0, 0, 0, 1 };
    if (kind == CU_FIRST) return { 0, 0, P < globals && r == 0 ? P + 1 : 0, 1 };
    if (kind == CU_WINDOW) {
      if (P < globals) return { 0, 0, 0, 1 };
      if (r == 0) return { 0, 0, globals, 1 };
      const int n = cu_min(window, (P - globals) / dilation + 1);
      return { 0, P - (n - 1) * dilation, n, dilation };
    }
    if (kind == CU_LONGSHORT) {
      const int full = P / chunk, chunks = cu_min(full, W / per_chunk), n = cu_min(P + 1, window);
      if (r == 0) return { 1, (full - chunks) * per_chunk, chunks * per_chunk, 1 };
      return { 0, P - n + 1, n, 1 };
    }
    if (kind == CU_BLOCKS_OF) {
      const int i = P / block;
      if (i >= blocks) return { 0, 0, 0, 1 };
      const int32_t *e = list + (((long)h * blocks + i) * n_ranges + r) * 2;
      const long from = cu_max((long)e[0], 0L), end = cu_min((long)e[0] + e[1], i + 1L);
      if (from >= end) return { 0, 0, 0, 1 };
      return { 0, (int)from * block, cu_min((int)(end - from) * block, P + 1 - (int)from * block), 1 };
    }
    const int32_t *e = list + (((by_head ? (long)h * (N / each) : 0) + P / each) * n_ranges + r) * 3;
    const long step = cu_max((long)e[2], 1L), skip = e[0] < 0 ? (step - 1 - e[0]) / step : 0;
    const long from = e[0] + skip * step, end = causal ? P + M - N + 1L : M;
    const long n = from < end ? cu_min(e[1] - skip, (end - from - 1) / step + 1) : 0;
    return n > 0 ? cu_range{ 0, (int)from, (int)n, (int)step } : cu_range{ 0, 0, 0, 1 };
  }

  /* What position has key j, as this row knows it, and of which set?  -1: none. */
  __device__ __forceinline__ int position_of(const Row &row, int j, int *of) const {
    *of = j < W + C;
    if (kind == CU_LISTED) return j;
    const int slots = *of ? W : S, pins = *of ? 0 : pinned, base = base_of(row, *of);
    if (!*of) j -= W + C;
    if (j >= slots) return j - slots - base >= 0 ? j - slots - base : -1;
    if (j < pins) return j < -base ? j : -1;
    const int last = -base - 1;                        /* the newest that was carried; j is after pins */
    if (last < pins) return -1;
    const int back = (last - j) % (slots - pins), p = last - (back < 0 ? back + slots - pins : back);
    return p >= pins ? p : -1;
  }

  static __device__ __forceinline__ bool within(const cu_range &a, int p) {
    const int k = p - a.from;
    if (k < 0) return false;
    return a.step == 1 ? k < a.n : k % a.step == 0 && k / a.step < a.n;
  }

  __device__ __forceinline__ float sees(const Row &row, int j, int, int h) const {
    int of, times = 0;
    if (row.P < 0) return 0;
    const int p = position_of(row, j, &of);
    if (p < 0 || (kind == CU_LISTED && p >= M)) return 0;
    for (int r = 0; r < n_ranges; r++) {
      const cu_range a = range(row, r, h);
      times += a.of == of && within(a, p);
    }
    return (float)times;
  }

  /* Carried keys are looked at whole, rows of keys from the first to the last of each range. */
  __device__ __forceinline__ bool touches(const Row &row, int j, int n, int h) const {
    for (int r = 0; r < n_ranges; r++) {
      const cu_range a = range(row, r, h);
      if (!a.n) continue;
      const int slots = a.of ? W : S, before = a.of ? 0 : W + C;
      const int from = a.from + base_of(row, a.of), end = from + (a.n - 1) * a.step;
      if (kind == CU_LISTED ? from < j + n && end >= j
                            : (from < 0 && before < j + n && before + slots > j)
                              || (before + slots + cu_max(from, 0) < j + n && before + slots + end >= j && end >= 0))
        return true;
    }
    return false;
  }
  __device__ __forceinline__ cu_span keys(int i, int n, int, int) const {
    return { 0, kind == CU_LISTED ? M : W + C + S + cu_min(i + n, t1) };
  }
  __device__ __forceinline__ cu_span rows(int j, int) const {
    return { kind == CU_LISTED ? 0 : cu_max(j - (W + C + S), 0), t1 };
  }
};

/* y of the rows that are asked for. */
void cu_episode_forward(const cu_episode &e);

/* All gradients of an op whose first output is y; scratch 0 of the call. */
void cu_episode_backward(mn_call *c, cu_episode e);

/* What the call's last row gives to each key, in its first output: see engine/attention/attention_weights.h. */
void cu_episode_weights(mn_call *c, const cu_episode &e);

/* What all ops share that know positions: sizes, tensors, and tokens with their carried ones in inputs mk and mk+1. */
cu_episode cu_episode_of(const mn_call *c, int mk);

/* May rows be read by fours?  To be called when all is set. */
void cu_episode_finish(cu_episode *e);
