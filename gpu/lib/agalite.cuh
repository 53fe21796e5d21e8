/* agalite.cuh -- what agalite.cu and agalite_backward.cu share: channels, their waves, and memory access.
**
** A stored channel m has a vector of keys and one of values; the sum of keys is one more channel of keys, of
** weight 1.  Features, values and channels are coupled by two sums only: kappa_m = k_m . q for each channel,
** and y = sum_m factor_m v_m with factor_m = weight_m kappa_m / den(s . q).  So a warp computes 32 features
** (or values) of up to four channels, carries them through time in registers, and writes the sums over features in
** parts of 32.  A chunk of sixteen tokens begins at a checkpoint, where the op stores its state.
**
** With many heads a warp walks through all chunks.  With few, most of a GPU would wait for these walks, so chunks are computed
** side by side: a first pass finds what each chunk makes of a state of zeros, and what it keeps of any; a scan over the chunks
** gives the state before each (backward, the gradient of the state after each); then every chunk has a warp of its own. */
#pragma once
#include "galite_decay.cuh"
#include "chunk.cuh"

enum { CODE, PAPER, COSSIN, RANDOM_SIGN };
enum { IN_TICK = IN_STATE, IN_VS, IN_KS, IN_S, IN_ENV };
enum { OUT_Y, OUT_VS, OUT_KS, OUT_S, OUT_TICK, OUT_SAVED };
enum { HEADER = 16, GROUP = 4, AGALITE_WARPS = 4 };      /* channels of a warp; warps of a block */

struct Waves {
  int form, r, M;                /* M stored channels */
  bool all;                      /* every published channel is stored, mirrored ones too */
  uint32_t seed[2];              /* of the random signs */
  const float *env;              /* whose signs a row of the batch meets; NULL: its own */
};

struct States { float *vs, *ks, *s; };     /* [B,M,H,V], [B,M,H,K], [B,H,K]; NULL: zeros, or not wanted */

struct Agalite {
  CuGatedInputs a;
  CuChunks p;                    /* where chunks and heads are */
  Waves waves;
  const float *tick;
  float *y, *tick_out, *saved;   /* a checkpoint: tick, [M,Kp], [Kp], [M,Vp] */
  States first, last;            /* where the state comes from, and goes; backward of their gradients */
  int Kp, Vp;

  /* Scratch: w of [B,T]; of the slice by places of sixteen tokens: */
  float *w;                      /* [B,T,M] */
  int key_parts, value_parts, groups;      /* warps that share a head's features, values, channels of keys */
  float *found;                  /* [.,M+1,key_parts]: kappa and s.q, in parts */
  float *kappa, *factor;         /* [.,M+1], [.,M] */
  float *along;                  /* [.,M,value_parts]: dy . v_m, in parts */
  float *dkappa;                 /* [.,M+1] */
  float *keys;                   /* [groups] of [.,3,K]: gradients of the features */

  /* Of a chunk of a head, where chunks are computed side by side, first of the keys, then of the values; else NULL: */
  float *states;                 /* [M+1,Kp] or [M,Vp]: what it makes of zeros; after the scan, the state that it begins with */
  float *kept;                   /* [Kp] or [Vp]: what it keeps of a state */
};

/* How many channels of the form stored channel m stands for. */
static __device__ __forceinline__ float cu_wave_weight(const Waves &x, int m) {
  if (x.form == RANDOM_SIGN) return 1.0f / (float)x.r;
  if (x.all) return 1.0f;
  if (x.form == CODE) return 2 * m == x.r - 1 ? 1.0f : 2.0f;
  if (x.form == PAPER) return 2 * m == x.r ? 1.0f : 2.0f;
  return m == 0 || 2 * m == x.r ? 1.0f : 2.0f;
}

/* Where channel m of a head's values, or keys, lies in a tensor [B,M,H,n]. */
static __device__ __forceinline__ long cu_channel(const Agalite &g, int bh, int m, int n) {
  return (((long)(bh / g.a.H) * g.waves.M + m) * g.a.H + bh % g.a.H) * n;
}

/* The state of keys: channel m at feature j, the last being s. */
static __device__ __forceinline__ float *cu_keys_at(const Agalite &g, const States &x, int bh, int m, int j) {
  if (m == g.waves.M) return x.s ? x.s + (long)bh * g.a.K + j : NULL;
  return x.ks ? x.ks + cu_channel(g, bh, m, g.a.K) + j : NULL;
}
static __device__ __forceinline__ float *cu_values_at(const Agalite &g, const States &x, int bh, int m, int i) {
  return x.vs ? x.vs + cu_channel(g, bh, m, g.a.V) + i : NULL;
}

/* The checkpoint before token t, a multiple of 16. */
static __device__ __forceinline__ float *cu_agalite_saved(const Agalite &g, int bh, int t) {
  const long size = HEADER + (long)g.waves.M * (g.Kp + g.Vp) + g.Kp;
  return g.saved + ((long)bh * ((g.a.T + CU_L - 1) / CU_L) + t / CU_L) * size;
}

/* Are chunks computed side by side? */
static inline bool cu_agalite_side_by_side(const Agalite &g) {
  return g.p.chunks > 1 && (long)g.a.B * g.a.H * g.value_parts < CU_FILL;
}

/* Floats of `states` and `kept` of a chunk of a head. */
static inline long cu_agalite_states(const Agalite &g) { return (g.waves.M + 2L) * cu_max(g.Kp, g.Vp); }

static inline void cu_agalite_set_states(Agalite *g, bool side_by_side, float *at) {
  g->states = side_by_side ? at : NULL;
  g->kept = side_by_side ? at + (long)g->p.heads * g->p.chunks * (g->waves.M + 1) * cu_max(g->Kp, g->Vp) : NULL;
}

/* Channel m of chunk c in `states`: `channels` of them, `wide` floats each. */
static __device__ __forceinline__ float *cu_state_of(const Agalite &g, int bh, int c, int channels, int m, int wide) {
  return g.states + (cu_place(g.p, bh, c) * channels + m) * wide;
}

/* agalite.cu */
Agalite cu_agalite(const mn_call *c, int t0, int t1, mn_attention *of);

/* w of rows t0 .. t1-1 and, where tick_out, the tick after them. */
void cu_agalite_waves(const Agalite *g);

/* found, kappa and factor of a slice; `again`: from checkpoints, and no state is left. */
void cu_agalite_keys(const Agalite *g, bool again);

/* After the first pass: `states` becomes the state before each chunk; back, the gradient of the state after each. */
void cu_agalite_scan(const Agalite *g, bool keys, bool back);

/* agalite_backward.cu */
void cu_agalite_backward(mn_call *c);
