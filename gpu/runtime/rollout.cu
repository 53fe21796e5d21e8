/* rollout.cu -- the parts of a rollout (engine/sim/rollout.h) outside of
** the environments' kernels.  Compiled, like those, without implicit fusing. */
#include "kernel.cuh"
extern "C" {
#include "sim/rollout.h"
}

enum { THREADS = 128 };

CU_KERNEL add_uncut(const mn_rollout &r, int n, int t, double gamma, const float *value) {
  const int i = (int)(blockIdx.x * THREADS + threadIdx.x);
  if (i < n) mn_rollout_add(&r, n, t, i, gamma, value);
}

static void add(const mn_rollout *r, int n, int t, double gamma, const float *value) {
  CU_LAUNCH(add_uncut, (n + THREADS - 1) / THREADS, THREADS, 0, *r, n, t, gamma, value);
}

extern "C" {
extern const mn_rollout_kernels mn_rollout_kernel;
const mn_rollout_kernels mn_rollout_kernel = { sizeof(mn_rollout), add };
}
