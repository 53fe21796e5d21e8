/* recurrent_cells.cuh -- runs a vector memory (gru, lstm) along time on a GPU: one launch per step for few environments, two
** for many.  A kernel for all steps would have to hold the whole weight matrix in the registers of blocks
** that wait for each other at every step; that wait costs as much as a node of a graph, and few sizes fit.
** So one launch computes a step: the recurrent product and the cell, or in backward, the product's
** gradient for the step before and that step's cell.  Tens of environments and more use a BLAS, and the cell follows.
**
** A Cell is a struct of pointers and sizes with B, D and as device functions
**   const float *from(int t)                the state [B,D] that enters the product of row t; NULL: zeros
**   void step(int t, long b, int d, const float (&pre)[GATES])       pre: the product, for each gate
**   void back(int t, long b, int d, float through)   `through`: gradient of the state after row t, from the product
**                                           of row t+1; the cell reads all other gradients.  t = -1: the state before row 0 */
#pragma once
#include "skinny_gemm.cuh"
#include "runtime/gemm.cuh"

enum { CU_FEW_ENVS = 32 };         /* up to that many environments use one launch per step */
enum { CU_ENV_TILE = 8, CU_OUTS = 32 / CU_ENV_TILE };     /* environments of a warp; in backward, elements of the state too */

/* A warp: number d of all gates, for a tile of environments.  w: [GATES*D, D]. */
template <int GATES, class Cell>
CU_KERNEL cu_few_step(const Cell &a, const float *w, int t, bool fours) {
  const int d = (int)blockIdx.x * CU_FEW_WARPS + (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  const int b0 = (int)blockIdx.y * CU_ENV_TILE;
  if (d >= a.D) return;
  const float *gate[GATES], *h = a.from(t);
  CU_UNROLL
  for (int g = 0; g < GATES; g++) gate[g] = w + ((long)g * a.D + d) * a.D;
  float sums[32] = {}, pre[GATES];
  if (h) cu_few_dots<CU_ENV_TILE, GATES>(h + (long)b0 * a.D, a.D, cu_min(a.B - b0, (int)CU_ENV_TILE), gate, a.D, fours, sums);
  const float sum = cu_few_sum(sums);
  CU_UNROLL
  for (int g = 0; g < GATES; g++) pre[g] = __shfl_sync(0xffffffffu, sum, g * CU_ENV_TILE + lane % CU_ENV_TILE);
  if (lane < CU_ENV_TILE && b0 + lane < a.B) a.step(t, b0 + lane, d, pre);
}

/* pre: [B, GATES*D]; NULL: zeros. */
template <int GATES, class Cell> CU_KERNEL cu_many_step(const Cell &a, const float *all, int t) {
  CU_LOOP(i, (long)a.B * a.D) {
    const long b = i / a.D, d = i % a.D;
    float pre[GATES];
    CU_UNROLL
    for (int g = 0; g < GATES; g++) pre[g] = all ? all[(b * GATES + g) * a.D + d] : 0;
    a.step(t, b, (int)d, pre);
  }
}

/* Rows t0 .. t1-1; from(t) on the host too.  Takes scratch 0. */
template <int GATES, class Cell> static void cu_run_cell(mn_call *c, const Cell &a, const float *w) {
  const int G = GATES * a.D;
  const bool few = a.B <= CU_FEW_ENVS;
  float *pre = few ? NULL : mn_scratch(c->ctx, 0, (long)a.B * G);
  const dim3 grid((unsigned)cu_parts(a.D, CU_FEW_WARPS), (unsigned)cu_parts(a.B, CU_ENV_TILE));
  for (int t = c->t0; t < c->t1; t++) {
    const float *h = a.from(t);
    const bool fours = cu_fours(w, a.D, a.D) && cu_fours(h, a.D, a.D);
    if (few) {
      CU_LAUNCH((cu_few_step<GATES, Cell>), grid, CU_FEW_THREADS, 0, a, w, t, fours);
      continue;
    }
    if (h) cu_gemm(c, false, true, a.B, G, a.D, h, a.D, w, a.D, pre, G, false);
    CU_LAUNCH((cu_many_step<GATES, Cell>), cu_blocks((long)a.B * a.D), CU_THREADS, 0, a, h ? pre : NULL, t);
  }
}

/* ---- backward ---- */

/* A warp: CU_OUTS numbers of the state, for a tile of environments.  dpre: [B,G] of row t+1, or NULL; turned: [D,G]. */
template <class Cell>
CU_KERNEL cu_few_back(const Cell &a, const float *dpre, const float *turned,
                      int G, int t, bool fours) {
  const int first = ((int)blockIdx.x * CU_FEW_WARPS + (int)threadIdx.x / 32) * CU_OUTS, lane = (int)threadIdx.x % 32;
  const int b0 = (int)blockIdx.y * CU_ENV_TILE;
  if (first >= a.D) return;
  const float *w[CU_OUTS];
  CU_UNROLL
  for (int j = 0; j < CU_OUTS; j++) w[j] = turned + (long)cu_min(first + j, a.D - 1) * G;
  float sums[32] = {};
  if (dpre) cu_few_dots<CU_ENV_TILE, CU_OUTS>(dpre + (long)b0 * G, G, cu_min(a.B - b0, (int)CU_ENV_TILE), w, G, fours, sums);
  const float sum = cu_few_sum(sums);
  const int d = first + lane / CU_ENV_TILE, b = b0 + lane % CU_ENV_TILE;
  if (d < a.D && b < a.B) a.back(t, b, d, sum);
}

template <class Cell> CU_KERNEL cu_many_back(const Cell &a, const float *through, int t) {
  CU_LOOP(i, (long)a.B * a.D) a.back(t, i / a.D, (int)(i % a.D), through ? through[i] : 0);
}

CU_KERNEL cu_turn(const float *w, float *to, long G, long D) {
  CU_LOOP(i, G * D) to[i] = w[i % G * D + i / G];
}

/* All rows, and where `initial` the states before row 0.  dpre: [T,B,G], which back() fills; takes scratch 3. */
template <class Cell>
static void cu_walk_back(mn_call *c, const Cell &a, int T, int G, const float *w, const float *dpre, bool initial) {
  const bool few = a.B <= CU_FEW_ENVS, fours = G % 4 == 0 && cu_fours(dpre, G, G);
  float *room = mn_scratch(c->ctx, 3, few ? (long)G * a.D : (long)a.B * a.D);   /* w turned, or what a product gives */
  const dim3 grid((unsigned)cu_parts(a.D, CU_FEW_WARPS * CU_OUTS), (unsigned)cu_parts(a.B, CU_ENV_TILE));
  if (few) CU_LAUNCH(cu_turn, cu_blocks((long)G * a.D), CU_THREADS, 0, w, room, (long)G, (long)a.D);
  for (int t = T - 1; t >= (initial ? -1 : 0); t--) {
    const float *next = t + 1 < T ? dpre + (t + 1L) * a.B * G : NULL;
    if (few) {
      CU_LAUNCH(cu_few_back<Cell>, grid, CU_FEW_THREADS, 0, a, next, room, G, t, fours);
      continue;
    }
    if (next) cu_gemm(c, false, false, a.B, a.D, G, next, G, w, a.D, room, a.D, false);
    CU_LAUNCH(cu_many_back<Cell>, cu_blocks((long)a.B * a.D), CU_THREADS, 0, a, next ? room : NULL, t);
  }
}
