/* context.c -- contexts: the arena, the records behind handles, the last error.
** Numbers that are computed live in one big reserved stretch of memory that is rewound, never freed:
** page faults of malloc and free alone cost more than the mathematics of a small agent. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "context.h"
#include "blas.h"
#include "device.h"

enum { ALIGN = 64, MAX_THREADS = 256 };
static char open_error[256] = "";

int mn_fail(mn_ctx *mn, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(mn ? mn->error : open_error, mn ? sizeof mn->error : sizeof open_error, fmt, ap);
  va_end(ap);
  return -1;
}

const char *mn_error(mn_ctx *mn) { return mn ? mn->error : open_error; }

/* ---- arenas ---- */

/* Reserve as much address space as there is memory; pages come when touched. */
int mn_arena_open(mn_arena *a) {
  size_t pages = (size_t)sysconf(_SC_PHYS_PAGES), page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t size = pages * page; size >= (size_t)1 << 24; size /= 2) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    madvise(p, size, MADV_HUGEPAGE);
    *a = (mn_arena){ .base = p, .size = size };
    return 0;
  }
  return -1;
}

void mn_arena_close(mn_arena *a) {
  if (a->base) munmap(a->base, a->size);
  a->base = NULL;
}

void *mn_take(mn_ctx *mn, mn_memory *m, size_t bytes, const char *what) {
  mn_arena *a = &m->arena;
  bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  if (!a->base && mn_arena_open(a)) return mn_fail(mn, "%s: out of memory: no address space", what), NULL;
  if (bytes > a->size - a->used) {
    mn_fail(mn, "%s: out of memory: %.1f MB more on top of %.1f MB (mn.sweep() after each update frees what was computed)",
            what, (double)bytes / 1e6, (double)a->used / 1e6);
    return NULL;
  }
  void *p = a->base + a->used;
  a->used += bytes;
  if (a->used > a->peak) a->peak = a->used;
  return p;
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

/* Zeros, 64-byte aligned; large ones are pages that come when touched.  Where the block begins is kept in front. */
void *mn_zeroed(size_t bytes) {
  char *block = calloc(1, bytes + 2 * ALIGN);
  if (!block) return NULL;
  char *at = block + ALIGN + (ALIGN - (size_t)block % ALIGN) % ALIGN;
  memcpy(at - sizeof block, &block, sizeof block);
  return at;
}

void mn_release(void *at) {
  char *block = NULL;
  if (at) memcpy(&block, (char *)at - sizeof block, sizeof block);
  free(block);
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
    mn_release(r->data);
    mn_release(r->grad);
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
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

mn_ctx *mn_ctx_new(const char *device, int threads) {
  mn_device *d;
  if (mn_device_open(NULL, device ? device : "cpu", &d)) return NULL;
  if (d)
    return mn_fail(NULL, "device=%s: its kernels are tested alone so far; whole contexts on it come with the GPU backend",
                   d->name), NULL;
  mn_ctx *mn = calloc(1, sizeof *mn);
  if (!mn || mn_arena_open(&mn->memory.arena)) {
    free(mn);
    return mn_fail(NULL, "out of memory"), NULL;
  }
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
  for (int i = 0; i < MN_SCRATCHES; i++) free(mn->scratch[i]);
  mn_team_close(mn);
  mn_arena_close(&mn->memory.arena);
  free(mn->memory.pool);
  free(mn->grave);
  free(mn->plan);
  free(mn);
}

int mn_threads(mn_ctx *mn) { return mn->threads; }
bool mn_worth(mn_ctx *mn, double work) { return work > 50000 && mn->threads > 1; }

int mn_set_threads(mn_ctx *mn, int threads) {
  if (threads < 0 || threads > MAX_THREADS)
    return mn_fail(mn, "threads=%d, expected 1..%d (0: what the machine has)", threads, MAX_THREADS);
  mn_team_close(mn);
  mn->threads = threads ? threads : threads_of_machine();
  return 0;
}
void mn_set_debug(mn_ctx *mn, bool on) { mn->debug = on; }

float *mn_scratch(mn_ctx *mn, int which, long n) {
  float **scratch = &mn->scratch[which];
  long *have = &mn->scratch_n[which];
  if (n > *have) {
    free(*scratch);
    *have = n = n + n / 4;
    *scratch = aligned_alloc(ALIGN, ((size_t)n * sizeof(float) + ALIGN - 1) & ~(size_t)(ALIGN - 1));
    if (!*scratch) {        /* an op cannot fail half-way: there is nothing left to do with no memory */
      fprintf(stderr, "mneme: out of memory: %.1f MB of scratch\n", (double)n * 4e-6);
      exit(1);
    }
  }
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
  if (!strcmp(what, "arena")) return (double)mn->memory.arena.used;
  if (!strcmp(what, "arena_peak")) return (double)mn->memory.arena.peak;
  if (!strcmp(what, "resident")) return resident();
  double n = 0;
  for (int i = 0; i < mn->n_plans; i++) if (mn->plan[i]) n += (double)mn->plan[i]->memory.arena.used;
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
