/* context.c -- contexts: the records behind handles, what lasts as long as they do, the last error. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "internal.h"
#include "base/denormals.h"
#include "numerics/gemm.h"
#include "device.h"

enum { MAX_THREADS = 256 };
static char open_error[256] = "";

int mn_fail(mn_ctx *mn, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(mn ? mn->error : open_error, mn ? sizeof mn->error : sizeof open_error, fmt, ap);
  va_end(ap);
  return -1;
}

const char *mn_error(mn_ctx *mn) { return mn ? mn->error : open_error; }

/* ---- the device ---- */

int mn_did(mn_ctx *mn, int result) {
  return result ? mn_fail(mn, "device=%s: %s", mn->device->name, mn->device->error()) : 0;
}

int mn_wait(mn_ctx *mn) { return mn_did(mn, mn->device->wait()); }

const mn_kernel *mn_kernel_of(mn_ctx *mn, int op, bool backward) {
  const mn_kernel *k = mn->kernel[op];
  if (k && (k->backward || !backward)) return k;
  return mn->kernel[op] = mn_device_kernel(mn, mn->device, &mn_ops_all(NULL)[op], backward);
}

/* ---- memory ---- */

void mn_memory_open(mn_ctx *mn, mn_memory *m) {
  m->numbers.on = mn->device;
  m->records.on = &mn_cpu;
}

void mn_memory_close(mn_memory *m) {
  mn_arena_close(&m->numbers);
  mn_arena_close(&m->records);
  free(m->pool);
}

/* A GPU says what is free, which may be less than what was asked for by far. */
int mn_no_memory(mn_ctx *mn, const mn_device *d, const char *what, double bytes, double used) {
  char had[48] = "", left[64] = "";
  if (used >= 0) snprintf(had, sizeof had, " more on top of %.1f MB", used / 1e6);
  if (d->library) snprintf(left, sizeof left, ", %.1f MB are free on device=%s", d->free_bytes() / 1e6, d->name);
  return mn_fail(mn, "%s: out of memory: %.1f MB%s%s%s", what, bytes / 1e6, had, left,
                 used >= 0 ? " (mn.sweep() after each update frees what was computed)" : "");
}

/* Make room for `need` items in a growing array (`array` points to the pointer). */
int mn_grow(mn_ctx *mn, void *array, int *cap, int need, size_t item) {
  if (need <= *cap) return 0;
  int n = *cap ? *cap * 2 : 64;
  while (n < need) n *= 2;
  void *p = realloc(*(void **)array, (size_t)n * item);
  if (!p) return mn_fail(mn, "out of memory");
  *(void **)array = p;
  *cap = n;
  return 0;
}

/* ---- records ---- */

static uint32_t fresh_gen(mn_ctx *mn) {
  if (!++mn->next_gen) ++mn->next_gen;
  return mn->next_gen;
}

/* A record with a lasting slot: leaves, and whatever a plan makes. */
mn_record *mn_new_leaf(mn_ctx *mn) {
  mn_record *r = mn->unused;
  if (r) mn->unused = r->of;
  else {
    if (mn_grow(mn, &mn->leaf, &mn->cap_leaves, mn->n_leaves + 1, sizeof *mn->leaf)) return NULL;
    r = malloc(sizeof *r);
    if (!r) return mn_fail(mn, "out of memory"), NULL;
    mn->leaf[mn->n_leaves++] = r;
    r->slot = -mn->n_leaves;
  }
  int slot = r->slot;
  memset(r, 0, sizeof *r);
  r->slot = slot;
  r->gen = fresh_gen(mn);
  return r;
}

static mn_record *until_sweep(mn_ctx *mn) {
  int i = mn->n_computed;
  if (i == mn->cap_computed) {
    int old = mn->cap_computed;
    if (mn_grow(mn, &mn->computed, &mn->cap_computed, i + 1, sizeof *mn->computed)) return NULL;
    memset(mn->computed + old, 0, sizeof *mn->computed * (size_t)(mn->cap_computed - old));
  }
  if (!mn->computed[i] && !(mn->computed[i] = malloc(sizeof(mn_record)))) return mn_fail(mn, "out of memory"), NULL;
  mn_record *r = mn->computed[i];
  memset(r, 0, sizeof *r);
  r->slot = i;
  r->gen = fresh_gen(mn);
  mn->n_computed++;
  return r;
}

mn_record *mn_new_record(mn_ctx *mn) {
  mn_plan *p = mn->recording;
  if (!p) return until_sweep(mn);
  if (mn_grow(mn, &p->own, &p->cap_own, p->n_own + 1, sizeof *p->own)) return NULL;
  mn_record *r = mn_new_leaf(mn);
  if (!r) return NULL;
  r->plan = p;
  return p->own[p->n_own++] = r;
}

void mn_free_slot(mn_ctx *mn, mn_record *r) {
  r->gen = 0;
  r->data = NULL;
  r->grad = NULL;
  r->of = mn->unused;
  mn->unused = r;
}

void mn_drop_record(mn_ctx *mn, mn_record *r) {
  if (!r->of && !r->plan) {
    mn->leaf_bytes -= (double)r->n * (r->grad ? 8 : r->dtype == MN_U8 ? 1 : 4);
    mn->device->free(r->data);
    mn->device->free(r->grad);
  }
  mn_record *of = r->of;
  mn_free_slot(mn, r);
  if (of) mn_unpin(mn, of);
}

void mn_unpin(mn_ctx *mn, mn_record *r) {
  if (--r->pins == 0 && r->dead) mn_drop_record(mn, r);
}

void mn_bury(mn_ctx *mn) {
  for (int i = 0; i < mn->n_grave; i++) mn_unpin(mn, mn->grave[i]);
  mn->n_grave = 0;
}

mn_record *mn_find(mn_ctx *mn, const mn_tensor *t, const char *op, const char *arg) {
  mn_record *r = NULL;
  if (!t) return mn_fail(mn, "%s: %s is nil, expected a tensor (a method needs the colon: t:shape())", op, arg), NULL;
  if (t->slot >= 0 && t->slot < mn->n_computed) r = mn->computed[t->slot];
  else if (t->slot < 0 && -(long)t->slot <= mn->n_leaves) r = mn->leaf[-(t->slot + 1)];
  if (r && t->gen && r->gen == t->gen && !r->dead) return r;
  mn_fail(mn, t->slot >= 0
          ? "%s: %s was computed before the last sweep (or inside mn.no_grad) and is gone; mn.keep() copies what must last"
          : "%s: %s has been freed, or belongs to a plan that was recorded anew", op, arg);
  return NULL;
}

/* ---- contexts ---- */

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
    mn_fail(NULL, "%s", mn->error);
    mn_ctx_free(mn);
    return NULL;
  }
  mn_blas_open();
  return mn;
}

static void free_records(mn_record **r, int n) {
  for (int i = 0; i < n; i++) free(r[i]);
  free(r);
}

void mn_ctx_free(mn_ctx *mn) {
  if (!mn) return;
  for (int i = 0; i < mn->n_plans; i++) mn_plan_free(mn->plan[i]);
  mn_sweep(mn);
  for (int i = 0; i < mn->n_leaves; i++)
    if (mn->leaf[i]->gen && !mn->leaf[i]->of) mn_drop_record(mn, mn->leaf[i]);
  free_records(mn->leaf, mn->n_leaves);
  free_records(mn->computed, mn->cap_computed);
  for (int i = 0; i < MN_SCRATCHES; i++) mn->device->free(mn->scratch[i]);
  mn_team_close(mn);
  mn_memory_close(&mn->memory);
  free(mn->kernel);
  free(mn->grave);
  free(mn->plan);
  free(mn);
}

int mn_threads(mn_ctx *mn) { return mn->threads; }
bool mn_worth(mn_ctx *mn, double work) { return work > 50000 && mn->threads > 1 && !mn->apart; }

int mn_set_threads(mn_ctx *mn, int threads) {
  if (threads < 0 || threads > MAX_THREADS)
    return mn_fail(mn, "threads=%d, expected 1..%d (0: what the machine has)", threads, MAX_THREADS);
  mn_team_close(mn);
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
