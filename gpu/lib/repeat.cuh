/* repeat.cuh -- repeats values along an axis: the gradient of a sum. */
#pragma once
#include "broadcast.cuh"

/* y[outer, size, inner] = scale * x[outer, inner] */
template <class V>
CU_KERNEL cu_spread_kernel(V *y, const float *x, long n, cu_divisor size, cu_divisor inner, bool moves,
                           float scale) {
  const int lanes = sizeof(V) / sizeof(float);
  CU_LOOP(i, n) {
    long at, unused;
    const long row = inner.divide(i, &at), o = size.divide(row, &unused);
    V v;
    cu_load(x, moves ? (o * inner.by + at) * lanes : o, moves, &v);
    y[i] = cu_each(v, [&](int j) { return scale * cu_lane(v, j); });
  }
}

static inline void cu_spread(float *y, const float *x, long outer, long size, long inner, float scale) {
  const long n = outer * size * inner;
  /* Where nothing lies inside, the four are of one sum. */
  const bool moves = inner > 1, quads = cu_quads(4, x, y) && (moves ? inner : size) % 4 == 0;
  if (!quads)
    CU_LAUNCH(cu_spread_kernel<float>, cu_blocks(n, 4), CU_THREADS, 0, y, x, n, cu_divisor(size),
              cu_divisor(inner), moves, scale);
  else
    CU_LAUNCH(cu_spread_kernel<float4>, cu_blocks(n, 4), CU_THREADS, 0, (float4 *)y, x, n / 4,
              cu_divisor(moves ? size : size / 4), cu_divisor(moves ? inner / 4 : 1), moves, scale);
}
