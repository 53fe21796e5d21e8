/* gemm.c -- matrix products: our own kernel, in which the bits of a row do not depend on how many rows there are.
** How work is divided depends on the sizes only, so the bits do not depend on the number of threads.  MNEME_BLAS=openblas
** takes OpenBLAS instead, with other bits for other numbers of rows; another value names a library, or none.
** It is loaded at run time, so that it can be set to one thread and a machine without it still works. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/workspace.h"
#include "gemm.h"
#include "op.h"
#include "packed_gemm.h"
#include "simd.h"

typedef void sgemm_fn(int order, int ta, int tb, int M, int N, int K, float alpha, const float *A, int lda,
                      const float *B, int ldb, float beta, float *C, int ldc);
static sgemm_fn *sgemm;
static char name[128] = "built-in";
static bool prefer_blas;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_library(void) {
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  const char *file = getenv("MNEME_BLAS");
  prefer_blas = file && strcmp(file, "none");
  if (!file || !strcmp(file, "openblas")) file = "libopenblas.so.0";
  void *lib = !strcmp(file, "none") ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!lib || !(sgemm = (sgemm_fn *)dlsym(lib, "cblas_sgemm"))) return;
  void (*set_threads)(int) = (void (*)(int))dlsym(lib, "openblas_set_num_threads");
  char *(*config)(void) = (char *(*)(void))dlsym(lib, "openblas_get_config");
  char *(*core)(void) = (char *(*)(void))dlsym(lib, "openblas_get_corename");
  if (set_threads) set_threads(1);
  char version[32] = "";
  if (config) sscanf(config(), "OpenBLAS %31s", version);
  snprintf(name, sizeof name, "OpenBLAS %s %s", version, core ? core() : "");
}

void mn_blas_open(void) { pthread_once(&once, open_library); }
const char *mn_blas(void) { mn_blas_open(); return name; }

/* Without a BLAS: rows of C at a time, the inner loop over columns. */
static void plain(bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
                  float *C, int ldc, bool add) {
  for (int m = 0; m < M; m++) {
    float *c = C + (size_t)m * (size_t)ldc;
    if (!add) memset(c, 0, sizeof(float) * (size_t)N);
    for (int k = 0; k < K; k++) {
      float a = ta ? A[(size_t)k * (size_t)lda + (size_t)m] : A[(size_t)m * (size_t)lda + (size_t)k];
      if (tb) for (int n = 0; n < N; n++) c[n] += a * B[(size_t)n * (size_t)ldb + (size_t)k];
      else for (int n = 0; n < N; n++) c[n] += a * B[(size_t)k * (size_t)ldb + (size_t)n];
    }
  }
}

void mn_gemm_one(bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
                 float *C, int ldc, bool add) {
  if (sgemm) sgemm(101, ta ? 112 : 111, tb ? 112 : 111, M, N, K, 1, A, lda, B, ldb, add ? 1 : 0, C, ldc);
  else plain(ta, tb, M, N, K, A, lda, B, ldb, C, ldc, add);
}

/* Panels p and p + 1 of the packed B, or the last one alone. */
static void pack_two(const mn_bf16 *bf16, bool tb, int N, int K, const float *B, int ldb, long p, long depth, float *panels) {
  panels += p * depth * MN_PANEL;
  B += tb ? p * MN_PANEL * ldb : p * MN_PANEL;
  N -= (int)p * MN_PANEL;
  if (!bf16 && !tb && N >= 2 * MN_PANEL) {                 /* rows in one pass: whole lines of memory, one after the other */
    for (int k = 0; k < K; k++, B += ldb)
      for (int i = 0; i < 2; i++) memcpy(panels + (i * depth + k) * MN_PANEL, B + i * MN_PANEL, sizeof *B * MN_PANEL);
    return;
  }
  for (int i = 0; i < 2 && N > 0; i++, N -= MN_PANEL, B += tb ? MN_PANEL * (long)ldb : MN_PANEL, panels += depth * MN_PANEL)
    (bf16 ? bf16->pack : mn_pack_panel)(B, ldb, K, N < MN_PANEL ? N : MN_PANEL, tb, panels);
}

/* Our own kernel: B packed by all threads, then rows of C by all threads. */
static const float *packed(mn_ctx *mn, int scratch, bool tb, int N, int K, const float *B, int ldb) {
  const mn_bf16 *bf16 = mn_bf16_of(mn);
  const long depth = bf16 ? mn_bf16_depth(K) : K, room = (long)mn_panels(N) * MN_PANEL * depth;
  bool made;
  float *panels = mn_constant_form(mn, B, room, bf16 ? tb + 2 : tb, &made);
  if (!panels) panels = mn_scratch(mn, scratch, room);
  if (!made) MN_FOR(mn, (double)N * K, p, 0, mn_panels(N), 2, pack_two(bf16, tb, N, K, B, ldb, p, depth, panels));
  return panels;
}

static void rows_with(mn_ctx *mn, const float *panels, bool ta, int M, int N, int K, const float *A, int lda, float *C, int ldc, bool add) {
  enum { ROWS = 64 };
  const mn_bf16 *bf16 = mn_bf16_of(mn);
  MN_FOR(mn, (double)M * N * K / 8, m, 0, M, ROWS,
    (bf16 ? bf16->rows : mn_gemm_panel_rows)((int)m, m + ROWS < M ? (int)m + ROWS : M, N, K, A, lda, ta, panels, C, ldc, add));
}

static bool by_own(mn_ctx *mn) { return mn_bf16_of(mn) || !prefer_blas; }

/* Rows that are too few to pack B for. */
static bool unpacked(mn_ctx *mn, bool tb, int M, int N) {
  return !tb && M <= MN_UNPACKED_ROWS && N % MN_PANEL == 0 && !prefer_blas && !mn_bf16_of(mn);
}

const float *mn_gemm_pack(mn_ctx *mn, int scratch, bool tb, int M, int N, int K, const float *B, int ldb) {
  return by_own(mn) && !unpacked(mn, tb, M, N) ? packed(mn, scratch, tb, N, K, B, ldb) : NULL;
}

enum { CHUNK = 4000000 };        /* M*N*K of one piece of work for the BLAS */

/* Cut along the longer side. */
static void by_blas(mn_ctx *mn, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
                    float *C, int ldc, bool add) {
  double work = (double)M * N * K;
  bool by_columns = N > M;
  int side = by_columns ? N : M, pieces = (int)(work / CHUNK) + 1;
  int piece = ((side + pieces - 1) / pieces + 31) / 32 * 32;
  pieces = (side + piece - 1) / piece;
  MN_PARALLEL(mn, work / 8 * (pieces > 1))
  for (int i = 0; i < pieces; i++) {
    int at = i * piece, n = side - at < piece ? side - at : piece;
    if (by_columns) mn_gemm_one(ta, tb, M, n, K, A, lda, tb ? B + (size_t)at * (size_t)ldb : B + at, ldb, C + at, ldc, add);
    else mn_gemm_one(ta, tb, n, N, K, ta ? A + at : A + (size_t)at * (size_t)lda, lda, B, ldb, C + (size_t)at * (size_t)ldc, ldc, add);
  }
}

void mn_gemm_with(mn_ctx *mn, const float *panels, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
                  float *C, int ldc, bool add) {
  if (panels) rows_with(mn, panels, ta, M, N, K, A, lda, C, ldc, add);
  else if (unpacked(mn, tb, M, N))
    MN_FOR(mn, (double)M * N * K / 8, n, 0, N, 2 * MN_PANEL,
      mn_gemm_unpacked(M, N - n < 2 * MN_PANEL ? MN_PANEL : 2 * MN_PANEL, K, A, lda, ta, B + n, ldb, C + n, ldc, add));
  else by_blas(mn, ta, tb, M, N, K, A, lda, B, ldb, C, ldc, add);
}

/* C[M,N] of A' and B (+ C if add), M of 32 or 64 and N of a few, computed as C'. */
static void narrow_columns(int M, int N, int K, const float *A, int lda, const float *B, int ldb, float *C, int ldc, bool add) {
  float turned[MN_NARROW_COLUMNS * 2 * MN_PANEL];
  for (int m = 0; add && m < M; m++) for (int n = 0; n < N; n++) turned[n * M + m] = C[(long)m * ldc + n];
  mn_gemm_unpacked(N, M, K, B, ldb, true, A, lda, turned, M, add);
  for (int m = 0; m < M; m++) for (int n = 0; n < N; n++) C[(long)m * ldc + n] = turned[n * M + m];
}

/* Rows m0 .. m1-1 of the product of a column and a row: as the kernel has it, whose sums begin with 0 and are then added to C. */
static void one_deep(int m0, int m1, int N, const float *A, int step, const float *B, float *C, int ldc, bool add) {
  int n = 0;
  for (; n + MN_LANES <= N; n += MN_LANES) {
    const mn_lanes b = mn_load(B + n);
    float *c = C + (long)m0 * ldc + n;
    if (add) for (int m = m0; m < m1; m++, c += ldc) mn_store(c, mn_load(c) + (A[(long)m * step] * b + mn_splat(0)));
    else for (int m = m0; m < m1; m++, c += ldc) mn_store(c, A[(long)m * step] * b + mn_splat(0));
  }
  for (int m = m0; n < N && m < m1; m++) {
    const float a = A[(long)m * step];
    float *c = C + (long)m * ldc;
    for (int j = n; j < N; j++) c[j] = add ? c[j] + (a * B[j] + 0.0f) : a * B[j] + 0.0f;
  }
}

void mn_gemm(mn_ctx *mn, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
             float *C, int ldc, bool add) {
  const double work = (double)M * N * K / 8;
  if (!tb && !unpacked(mn, tb, M, N) && by_own(mn) && !mn_bf16_of(mn)) {
    if (K == 1) {
      MN_FOR(mn, work, m, 0, M, 64, one_deep((int)m, M - m < 64 ? M : (int)m + 64, N, A, ta ? 1 : lda, B, C, ldc, add));
      return;
    }
    if (ta && N <= MN_NARROW_COLUMNS && M % MN_PANEL == 0) {          /* a gradient of weights with few inputs: C' = B' A fills the vectors */
      MN_FOR(mn, work, m, 0, M, 2 * MN_PANEL, narrow_columns(M - m < 2 * MN_PANEL ? MN_PANEL : 2 * MN_PANEL, N, K, A + m, lda, B, ldb, C + m * ldc, ldc, add));
      return;
    }
  }
  mn_gemm_with(mn, mn_gemm_pack(mn, MN_SCRATCH_GEMM, tb, M, N, K, B, ldb), ta, tb, M, N, K, A, lda, B, ldb, C, ldc, add);
}

int mn_gemm_once(mn_ctx *mn, bool blas, int n, const float *a, const float *b, float *c) {
  if (_setjmp(mn_work(mn)->unless_scratch)) return -1;
  if (blas) mn_gemm_one(false, true, n, n, n, a, n, b, n, c, n, false);
  else mn_gemm(mn, false, true, n, n, n, a, n, b, n, c, n, false);
  return 0;
}
