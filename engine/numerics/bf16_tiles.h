/* bf16_tiles.h -- a product by tiles, in the words that bf16_amx.c defines twice: AMX's instructions, and plain code. */
#ifndef MN_BF16_TILES_H
#define MN_BF16_TILES_H

/* Up to 32 rows with one panel, `deep` numbers of depth, a multiple of 32.  Tiles 0 to 3 are the sums, 4 and 5 A's, 6 and 7 B's. */
static void MN_TILES(block)(int rows, int n, int deep, const uint16_t *a, const float *panel, float *C, long ldc, bool add) {
  _Alignas(64) float edge[2 * SIDE * PANEL];
  const bool whole = rows == 2 * SIDE && n >= PANEL, two = rows > SIDE;
  float *sum = whole ? C : edge;
  const long row = whole ? ldc : PANEL, bytes = row * (long)sizeof *sum;
  if (!whole || !add) {
    for (int m = 0; m < (two ? 2 : 1) * SIDE; m++)
      for (int j = 0; j < PANEL; j++) sum[m * row + j] = add && m < rows && j < n ? C[m * ldc + j] : 0;
  }
  TILE_REGISTERS
  TILE_LOAD(0, sum, bytes);
  TILE_LOAD(1, sum + SIDE, bytes);
  if (two) {
    TILE_LOAD(2, sum + SIDE * row, bytes);
    TILE_LOAD(3, sum + SIDE * row + SIDE, bytes);
  }
  for (int k = 0; k < deep; k += DEEP) {
    TILE_LOAD(6, panel + k / 2 * PANEL, PANEL * (long)sizeof *panel);
    TILE_LOAD(7, panel + k / 2 * PANEL + SIDE, PANEL * (long)sizeof *panel);
    TILE_LOAD(4, a + k, DEPTH * (long)sizeof *a);
    TILE_DOT(0, 4, 6);
    TILE_DOT(1, 4, 7);
    if (two) {
      TILE_LOAD(5, a + SIDE * DEPTH + k, DEPTH * (long)sizeof *a);
      TILE_DOT(2, 5, 6);
      TILE_DOT(3, 5, 7);
    }
  }
  TILE_STORE(0, sum, bytes);
  TILE_STORE(1, sum + SIDE, bytes);
  if (two) {
    TILE_STORE(2, sum + SIDE * row, bytes);
    TILE_STORE(3, sum + SIDE * row + SIDE, bytes);
  }
  for (int m = 0; m < rows && !whole; m++) memcpy(C + m * ldc, sum + m * row, sizeof *C * (size_t)(n < PANEL ? n : PANEL));
}

/* Some rows of pieces, pieces of depth k .. of them: blocks of tiles, and what is left of 32 products as pairs. */
static void MN_TILES(piece)(int some, int N, int K, int k, int depth, const uint16_t *a, const float *panels, float *C, long ldc, bool add) {
  const int deep = depth / DEEP * DEEP;
  for (int n = 0; n < N; n += PANEL) {
    const float *panel = panels + n * mn_bf16_depth(K) + k / 2 * PANEL;
    for (int r = 0; deep && r < some; r += 2 * SIDE)
      MN_TILES(block)(some - r < 2 * SIDE ? some - r : 2 * SIDE, N - n, deep, a + r * DEPTH, panel, C + r * ldc + n, ldc, add || k);
    if (deep < depth) REST(some, N - n, depth - deep, a + deep, panel + deep / 2 * PANEL, C + n, ldc, add || k || deep);
  }
}

static void MN_TILES(rows)(int m0, int m1, int N, int K, const float *A, int lda, bool transposed, const float *panels, float *C, int ldc, bool add) {
  _Alignas(64) uint16_t a[SOME * DEPTH];
  TILE_BEGIN
  for (int m = m0; m < m1; m += SOME)
    for (int k = 0; k < K; k += DEPTH) {
      const int some = m1 - m < SOME ? m1 - m : SOME, depth = K - k < DEPTH ? K - k : DEPTH;
      TAKE(some, depth, A, lda, transposed, m, k, a);
      for (int r = some; r % SIDE; r++) memset(a + r * DEPTH, 0, sizeof *a * DEPTH);      /* a tile has them, too */
      MN_TILES(piece)(some, N, K, k, depth, a, panels, C + (long)m * ldc, ldc, add);
    }
  TILE_END
}

static void MN_TILES(take)(int M, int K, const float *A, int lda, uint16_t *to) {
  for (int k = 0; k < K; k += DEPTH, to += mn_bf16_piece(M)) {
    TAKE(M, K - k < DEPTH ? K - k : DEPTH, A, lda, false, 0, k, to);
    for (int r = M; r % SIDE; r++) memset(to + r * DEPTH, 0, sizeof *to * DEPTH);
  }
}

static void MN_TILES(taken)(int M, int N, int K, const uint16_t *a, long piece, const float *panels, float *C, int ldc, bool add) {
  TILE_BEGIN
  for (int k = 0; k < K; k += DEPTH, a += piece) MN_TILES(piece)(M, N, K, k, K - k < DEPTH ? K - k : DEPTH, a, panels, C, ldc, add);
  TILE_END
}

#endif
