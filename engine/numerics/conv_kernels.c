/* conv_kernels.c -- products of an image's patches: see conv_kernels.h. */
#include "conv_kernels.h"
#include "simd.h"

enum { AHEAD = 16 };              /* rows of a panel that are on their way from the second cache */
#if MN_LANES == 16
enum { ROWS = 8 };                /* 8 x 2 sums, of 32 registers */
#else
enum { ROWS = 6 };                /* 6 x 2 sums, of 16 */
#endif
enum { FEW = 4 };                 /* what is left at the end goes by 4 */

int mn_patch_width(int N) { return N > MN_LANES ? 2 * MN_LANES : MN_LANES; }
int mn_patch_panels(int N) { return (N + mn_patch_width(N) - 1) / mn_patch_width(N); }
long mn_patch_packed(int N, int K) { return (long)mn_patch_panels(N) * (1 + K) * mn_patch_width(N); }

/* Number n of row `line, tap, channel` of the weights. */
static long place(const mn_weights *f, int line, int tap, int channel, int n) {
  return line * f->per_line + tap * f->per_tap + channel * f->per_channel + n * f->per_n;
}

void mn_pack_weights(const mn_weights *f, const float *w, const float *bias, float *packed) {
  int width = mn_patch_width(f->N);
  for (int n0 = 0; n0 < f->N; n0 += width) {
    int n = f->N - n0 < width ? f->N - n0 : width;
    for (int j = 0; j < width; j++) packed[j] = bias && j < n ? bias[n0 + j] : 0;
    packed += width;
    for (int line = 0; line < f->lines; line++)
      for (int tap = 0; tap < f->taps; tap++)
        for (int channel = 0; channel < f->channels; channel++, packed += width)
          for (int j = 0; j < width; j++) packed[j] = j < n ? w[place(f, line, tap, channel, n0 + j)] : 0;
  }
}

void mn_unpack_weights(const mn_weights *f, const float *packed, float *w, float *dbias) {
  int width = mn_patch_width(f->N);
  for (int n0 = 0; n0 < f->N; n0 += width) {
    int n = f->N - n0 < width ? f->N - n0 : width;
    for (int j = 0; dbias && j < n; j++) dbias[n0 + j] = packed[j];
    packed += width;
    for (int line = 0; line < f->lines; line++)
      for (int tap = 0; tap < f->taps; tap++)
        for (int channel = 0; channel < f->channels; channel++, packed += width)
          for (int j = 0; w && j < n; j++) w[place(f, line, tap, channel, n0 + j)] = packed[j];
  }
}

/* NaN stays NaN. */
MN_INLINE mn_lanes at_least_0(mn_lanes v) {
  typedef int bits __attribute__((vector_size(4 * MN_LANES)));
  return (mn_lanes)((bits)v & ~(bits)(v < mn_splat(0)));
}

/* `rows` patches with one panel of `wide` vectors, of which n columns count. */
MN_INLINE void product(const int rows, const int wide, const mn_patches *p, const float *const *patch, const float *panel,
                       bool relu, int n, float *const *out) {
  mn_lanes sum[ROWS][2];
  const float *a[ROWS];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    a[r] = patch[r];
#pragma GCC unroll 2
    for (int v = 0; v < wide; v++) sum[r][v] = mn_load(panel + v * MN_LANES);
  }
  for (int line = 0; line < p->lines; line++) {
    for (int k = 0; k < p->line; k++) {
      mn_lanes b[2];
      panel += wide * MN_LANES;
      __builtin_prefetch(panel + AHEAD * wide * MN_LANES);
      if (wide == 2) __builtin_prefetch(panel + AHEAD * wide * MN_LANES + 16);
#pragma GCC unroll 2
      for (int v = 0; v < wide; v++) b[v] = mn_load(panel + v * MN_LANES);
#pragma GCC unroll 8
      for (int r = 0; r < rows; r++) {
        float x = a[r][k];
#pragma GCC unroll 2
        for (int v = 0; v < wide; v++) sum[r][v] += x * b[v];
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) a[r] += p->pitch;
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < wide; v++) {
      mn_lanes y = relu ? at_least_0(sum[r][v]) : sum[r][v];
      if (n == wide * MN_LANES) mn_store(out[r] + v * MN_LANES, y);
      else if (n > v * MN_LANES) mn_store_n(out[r] + v * MN_LANES, y, n - v * MN_LANES);
    }
}

/* All patches with one panel.  Behind the last one it is taken again. */
MN_INLINE void product_panel(const int wide, const mn_patches *p, const float *image, const float *panel, bool relu, int n,
                             float *out) {
  int x = 0, all = p->rows * p->cols;
  const float *line = image;
  float *to = out;
  for (int i = 0; i < all; i += ROWS) {
    const float *patch[ROWS];
    float *y[ROWS];
    for (int r = 0; r < ROWS; r++) {
      patch[r] = line + x * p->across;
      y[r] = to + x * p->out_across;
      if (i + r + 1 >= all) continue;
      if (++x == p->cols) x = 0, line += p->down, to += p->out_down;
    }
    if (all - i > FEW) product(ROWS, wide, p, patch, panel, relu, n, y);
    else product(FEW, wide, p, patch, panel, relu, n, y);
  }
}

void mn_patches_product(const mn_patches *p, const float *image, const float *packed, bool relu, float *out) {
  int width = mn_patch_width(p->N), K = p->lines * p->line;
  for (int n = 0; n < p->N; n += width, packed += (long)(1 + K) * width) {
    int left = p->N - n < width ? p->N - n : width;
    if (width == MN_LANES) product_panel(1, p, image, packed, relu, left, out + n);
    else product_panel(2, p, image, packed, relu, left, out + n);
  }
}

/* Rows k .. of one panel of the sums; `rows` of them are computed, `left` at most are added. */
MN_INLINE void weights(const int rows, const int wide, const mn_patches *p, const float *image, const float *dz, int k, int left,
                       float *panel) {
  mn_lanes sum[ROWS][2];
  long at[ROWS];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    int kr = r < left ? k + r : k;
    at[r] = kr / p->line * p->pitch + kr % p->line;
#pragma GCC unroll 2
    for (int v = 0; v < wide; v++) sum[r][v] = mn_splat(0);
  }
  for (int y = 0; y < p->rows; y++) {
    const float *x = image + y * p->down, *z = dz + y * p->out_down;
    for (int i = 0; i < p->cols; i++, x += p->across, z += p->out_across) {
      mn_lanes b[2];
#pragma GCC unroll 2
      for (int v = 0; v < wide; v++) b[v] = mn_load(z + v * MN_LANES);
#pragma GCC unroll 8
      for (int r = 0; r < rows; r++) {
        float a = x[at[r]];
#pragma GCC unroll 2
        for (int v = 0; v < wide; v++) sum[r][v] += a * b[v];
      }
    }
  }
  panel += (1 + (long)k) * wide * MN_LANES;
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < wide && r < left; v++) {
      float *to = panel + (r * wide + v) * MN_LANES;
      mn_store(to, mn_load(to) + sum[r][v]);
    }
}

MN_INLINE void weights_panel(const int wide, const mn_patches *p, const float *image, const float *dz, float *panel) {
  int K = p->lines * p->line;
  for (int v = 0; v < wide; v++) {
    mn_lanes sum = mn_load(panel + v * MN_LANES);
    for (int y = 0; y < p->rows; y++)
      for (int x = 0; x < p->cols; x++) sum += mn_load(dz + y * p->out_down + x * p->out_across + v * MN_LANES);
    mn_store(panel + v * MN_LANES, sum);
  }
  for (int k = 0; k < K; k += ROWS) {
    if (K - k > FEW) weights(ROWS, wide, p, image, dz, k, K - k, panel);
    else weights(FEW, wide, p, image, dz, k, K - k, panel);
  }
}

void mn_patches_weights(const mn_patches *p, const float *image, const float *dz, float *sums) {
  int width = mn_patch_width(p->N), K = p->lines * p->line;
  for (int n = 0; n < p->N; n += width, sums += (long)(1 + K) * width) {
    if (width == MN_LANES) weights_panel(1, p, image, dz + n, sums);
    else weights_panel(2, p, image, dz + n, sums);
  }
}
