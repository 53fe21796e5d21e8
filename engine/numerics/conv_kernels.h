/* conv_kernels.h -- products of an image's patches with packed weights, the parts of a convolution.
** An image is [Y,X,C], so a patch is a few contiguous lines.  The kernels read them in place, without
** first copying them into a matrix (im2col), and keep the sums in registers. */
#ifndef MN_CONV_KERNELS_H
#define MN_CONV_KERNELS_H
#include "op.h"

/* Patches of one image, and where each one's N results lie.  Distances in floats. */
typedef struct mn_patches {
  int  rows, cols;                  /* patches down and across */
  long down, across;                /* from a patch to the one below it, and to its right neighbour */
  int  lines, line;                 /* a patch: that many lines of that many numbers */
  long pitch;                       /* from a line to the next */
  int  N;                           /* results of a patch */
  long out_down, out_across;        /* from its results to those of the patch below, and of its right neighbour */
} mn_patches;

/* A convolution's weights as [n][channel][line][tap] or any other order: distances in floats. */
typedef struct mn_weights {
  int  lines, taps, channels, N;    /* lines x taps x channels numbers of a patch, N results */
  long per_line, per_tap, per_channel, per_n;
} mn_weights;

/* Packed weights are panels of one or two vectors' width, [panels, 1 + K, width] with K = lines * taps * channels;
** the first row is the bias. */
int mn_patch_width(int N);
int mn_patch_panels(int N);
long mn_patch_packed(int N, int K);
void mn_pack_weights(const mn_weights *form, const float *w, const float *bias, float *packed);
/* Back from packed sums, their first row to dbias; either may be NULL. */
void mn_unpack_weights(const mn_weights *form, const float *packed, float *w, float *dbias);

/* out = bias + patches x weights, then relu where asked. */
void mn_patches_product(const mn_patches *p, const float *image, const float *packed, bool relu, float *out);

/* sums (packed, dbias first) += patches^T x dz, dz laid out as out is.  Up to two vectors' width behind
** the last result of dz are read, and do not count. */
void mn_patches_weights(const mn_patches *p, const float *image, const float *dz, float *sums);

#endif
