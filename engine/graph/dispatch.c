/* dispatch.c -- running the kernel of an op: which one, on which threads, with what scratch memory. */
#include "internal.h"
#include "base/denormals.h"
#include "base/thread_pool.h"

/* ---- the device ---- */

int mn_wait(mn_ctx *mn) { return mn_check_device(mn, mn->device->wait()); }

const mn_kernel *mn_kernel_of(mn_ctx *mn, int op, bool backward) {
  const mn_kernel *k = mn->kernel[op];
  if (k && (k->backward || !backward)) return k;
  return mn->kernel[op] = mn_device_kernel(mn, mn->device, &mn_ops_all(NULL)[op], backward);
}

/* ---- threads ---- */

bool mn_parallel_pays(mn_ctx *mn, double work) { return work > 50000 && mn->threads > 1 && !mn->in_batch_parallel; }
static mn_pool *pool_of(mn_ctx *mn) {
  if (mn->threads > 1 && !mn->pool) mn->pool = mn_pool_new(mn->threads - 1);
  return mn->pool;
}

void mn_parallel_for(mn_ctx *mn, int n, mn_job *f, void *arg) {
  mn_pool_run(n < 2 || mn->in_batch_parallel ? NULL : pool_of(mn), n, f, arg);
}

void mn_parallel_ops(mn_ctx *mn, int n, mn_job *f, void *arg) {
  mn_pool *pool = pool_of(mn);
  mn->in_batch_parallel = true;
  mn_pool_run(pool, n, f, arg);
  mn->in_batch_parallel = false;
}

unsigned mn_flush_all(mn_ctx *mn) {
  const unsigned before = mn_flush();              /* first: this thread is one of OpenMP's, too */
  if (!mn->flushes && mn->threads > 1) {           /* its others keep it */
    MN_PRAGMA(omp parallel num_threads(mn->threads))
    mn_flush();
    mn->flushes = true;
  }
  return before;
}

/* An op takes its scratch before anything else can go wrong, and has no way to fail: it is left from here. */
int mn_do(mn_ctx *mn, void (*pass)(mn_call *c), mn_call *c) {
  const unsigned before = mn_flush_all(mn);
  if (_setjmp(mn->unless_scratch)) {
    mn->constant = NULL;                           /* a recurrence may have been left */
    mn_unflush(before);
    return -1;
  }
  pass(c);
  mn_unflush(before);
  return 0;
}

float *mn_scratch(mn_ctx *mn, int which, long n) {
  float **scratch = &mn->scratch[which];
  long *have = &mn->scratch_n[which];
  if (n > *have) {
    mn->device->free(*scratch);
    n = n + n / 4;
    mn->scratch_version++;
    const size_t bytes = ((size_t)n * sizeof(float) + MN_ALIGN - 1) & ~(size_t)(MN_ALIGN - 1);
    *scratch = mn->device->alloc(bytes);
    *have = *scratch ? n : 0;
    if (!*scratch) {
      mn_no_memory(mn, mn->device, "scratch", (double)bytes, -1);
      longjmp(mn->unless_scratch, 1);
    }
  }
  mn_poison(mn->device, *scratch, (size_t)n * sizeof(float));
  return *scratch;
}

int mn_gemm_once(mn_ctx *mn, bool blas, int n, const float *a, const float *b, float *c) {
  if (_setjmp(mn->unless_scratch)) return -1;
  if (blas) mn_gemm_one(false, true, n, n, n, a, n, b, n, c, n, false);
  else mn_gemm(mn, false, true, n, n, n, a, n, b, n, c, n, false);
  return 0;
}
