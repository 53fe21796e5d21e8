/* context.c -- contexts: opened and closed, their memory, threads and precision. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "internal.h"
#include "base/thread_pool.h"
#include "numerics/gemm.h"

enum { MAX_THREADS = 256 };
static int threads_of_machine(void) {
  const char *from[] = { "SLURM_CPUS_PER_TASK", "OMP_NUM_THREADS" };
  for (int i = 0; i < 2; i++) {
    const char *s = getenv(from[i]);
    if (s && atoi(s) > 0) return atoi(s);
  }
  return mn_cores();
}

mn_ctx *mn_ctx_new(const char *device, int threads) {
  mn_device *d;
  if (mn_device_open(NULL, device ? device : "cpu", &d)) return NULL;
  mn_ctx *mn = calloc(1, sizeof *mn);
  if (!mn || !(mn->kernel = calloc((size_t)mn_op_count(), sizeof *mn->kernel))) {
    free(mn);
    return mn_fail(NULL, "out of memory"), NULL;
  }
  mn->device = d;
  mn_memory_open(mn, &mn->memory);
  if (mn_set_threads(mn, threads)) {
    mn_fail(NULL, "%s", mn_error(mn));
    mn_ctx_free(mn);
    return NULL;
  }
  mn_blas_open();
  return mn;
}

void mn_ctx_free(mn_ctx *mn) {
  if (!mn) return;
  for (int i = 0; i < mn->n_plans; i++) mn_plan_free(mn->plan[i]);
  mn_sweep(mn);
  mn_records_close(mn);
  for (int i = 0; i < MN_SCRATCHES; i++) mn->device->free(mn->scratch[i]);
  mn_forms_free(mn);
  mn_pool_free(mn->pool);
  mn_memory_close(&mn->memory);
  mn_collect_close(mn);
  free(mn->kernel);
  free(mn->plan);
  free(mn);
}

int mn_threads(mn_ctx *mn) { return mn->threads; }

int mn_set_threads(mn_ctx *mn, int threads) {
  if (threads < 0 || threads > MAX_THREADS)
    return mn_fail(mn, "threads=%d, expected 1..%d (0: all processors)", threads, MAX_THREADS);
  mn_pool_free(mn->pool);
  mn->pool = NULL;
  mn->threads = threads ? threads : threads_of_machine();
  if (mn->threads > MAX_THREADS) mn->threads = MAX_THREADS;
  mn->flushes = false;
  return 0;
}
void mn_set_place(mn_ctx *mn, int place) { mn->place = place; }
void mn_set_debug(mn_ctx *mn, bool on) { mn->debug = on; }

int mn_precision(const mn_ctx *mn) { return mn->precision; }

int mn_set_precision(mn_ctx *mn, const char *word) {
  static const char *const words[] = { [MN_FP32] = "fp32", [MN_TF32] = "tf32", [MN_BF16] = "bf16" };
  for (int i = 0; i < 3; i++) {
    if (strcmp(word, words[i])) continue;
    if (i && !mn->device->library)
      return mn_fail(mn, "precision=%s: device=cpu computes in fp32; tf32 and bf16 are for device=cuda", word);
    for (int k = 0; k < mn->n_plans; k++) if (mn->plan[k]) mn_graphs_drop(mn->plan[k]);
    mn->precision = i;
    return 0;
  }
  return mn_fail(mn, "precision=%s is unknown, expected fp32, tf32 or bf16", word);
}

static double resident(void) {
  FILE *f = fopen("/proc/self/statm", "r");
  long size, pages = 0;
  if (f) {
    if (fscanf(f, "%ld %ld", &size, &pages) != 2) pages = 0;
    fclose(f);
  }
  return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

double mn_bytes(mn_ctx *mn, const char *what) {
  if (!strcmp(what, "leaf")) return mn->leaf_bytes;
  if (!strcmp(what, "arena")) return (double)mn->memory.numbers.used;
  if (!strcmp(what, "arena_peak")) return (double)mn->memory.numbers.peak;
  if (!strcmp(what, "resident")) return resident();
  double n = 0;
  for (int i = 0; i < mn->n_plans; i++) if (mn->plan[i]) n += (double)mn->plan[i]->memory.numbers.used;
  return n;
}

const char *mn_simd(void) {
#if defined(__AVX512F__)
  return "avx512";
#elif defined(__AVX2__)
  return "avx2";
#else
  return "scalar";
#endif
}
