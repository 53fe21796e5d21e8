/* context.c -- contexts: opened and closed, their memory, threads and precision. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "internal.h"
#include "base/thread_pool.h"
#include "numerics/bf16_gemm.h"
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

static void *wait_for(void *lock) {
  pthread_mutex_lock(lock);
  pthread_mutex_unlock(lock);
  return NULL;
}

/* How many threads the system grants, up to n: OpenMP ends the process where it gets fewer than it asks for. */
static int granted(int n) {
  static int had = 1;
  pthread_t thread[MAX_THREADS];
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  int more = 0;
  if (n <= had) return n;
  pthread_mutex_lock(&lock);
  while (more < n - 1 && !pthread_create(&thread[more], NULL, wait_for, &lock)) more++;
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < more; i++) pthread_join(thread[i], NULL);
  if (more + 1 > had) had = more + 1;
  return more + 1;
}

mn_ctx *mn_ctx_new(const char *device, int threads) {
  mn_device *d;
  if (mn_device_open(NULL, device ? device : "cpu", &d)) return NULL;
  mn_ctx *mn = calloc(1, sizeof *mn);
  if (!mn || !(mn->kernel = calloc((size_t)mn_op_count(), sizeof *mn->kernel))) {
    free(mn);
    return mn_fail(NULL, "out of memory"), NULL;
  }
  mn->work.device = d;
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
  mn_workspace_close(&mn->work);
  mn_memory_close(&mn->memory);
  mn_collect_close(mn);
  free(mn->kernel);
  free(mn->plan);
  free(mn);
}

int mn_set_threads(mn_ctx *mn, int threads) {
  if (threads < 0 || threads > MAX_THREADS)
    return mn_fail(mn, "threads=%d, expected 1..%d (0: all processors)", threads, MAX_THREADS);
  int wanted = threads ? threads : threads_of_machine();
  if (wanted > MAX_THREADS) wanted = MAX_THREADS;
  const int most = granted(wanted);
  if (threads > most) return mn_fail(mn, "threads=%d: the system grants %d (ulimit -u, or a limit of its group)", threads, most);
  mn_pool_free(mn->work.pool);
  mn->work.pool = NULL;
  mn->work.threads = most;
  mn->work.flushes = false;
  return 0;
}
void mn_set_place(mn_ctx *mn, int place) { mn->place = place; }
void mn_set_debug(mn_ctx *mn, bool on) { mn->debug = on; }

const char *mn_bf16_name(const char *emulate) {
  const mn_bf16 *found = mn_bf16_find(emulate);
  return found ? found->name : "";
}

/* Packed weights are in the old precision, so rows begin again. */
static int forget_rows(mn_plan *p) {
  if (mn_plan_finish(p, MN_FINAL) || mn_plan_finish(p, MN_ON_DEMAND)) return -1;
  p->next_row = 0;
  return 0;
}

int mn_set_precision(mn_ctx *mn, const char *word, const char *emulate) {
  static const char *const words[] = { [MN_FP32] = "fp32", [MN_TF32] = "tf32", [MN_BF16] = "bf16" };
  for (int i = 0; i < 3; i++) {
    if (strcmp(word, words[i])) continue;
    const bool cpu = !mn->work.device->library, slow = strcmp(emulate, "0") != 0;
    if (slow && strcmp(emulate, "1") && strcmp(emulate, "amx")) return mn_fail(mn, "emulate=%s is unknown, expected 0, 1 or amx", emulate);
    if (slow && (i != MN_BF16 || !cpu)) return mn_fail(mn, "emulate=%s: only precision=bf16 on device=cpu can be emulated", emulate);
    if (cpu && i == MN_TF32) return mn_fail(mn, "precision=tf32: device=cpu computes in fp32 or bf16; tf32 is for device=cuda");
    const mn_bf16 *bf16 = cpu && i == MN_BF16 ? mn_bf16_find(emulate) : NULL;
    if (cpu && i == MN_BF16 && !bf16)
      return mn_fail(mn, "precision=bf16: this CPU has neither AVX512-BF16 nor AMX-BF16; precision=fp32, or emulate=1 for the same bits in slow code");
    for (int k = 0; k < mn->n_plans; k++) {
      if (!mn->plan[k]) continue;
      mn_graphs_drop(mn->plan[k]);
      if (mn->work.bf16 != bf16 && forget_rows(mn->plan[k])) return -1;
    }
    mn->work.precision = i;
    mn->work.bf16 = bf16;
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
#elif defined(__SSE2__)
  return "sse2";
#elif defined(__ARM_NEON)
  return "neon";
#else
  return "scalar";
#endif
}
