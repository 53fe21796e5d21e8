/* workspace.c -- threads, scratch memory and forms of matrices for kernels, and running one. */
#include "workspace.h"
#include <stdio.h>
#include <string.h>
#include "denormals.h"

void mn_workspace_close(mn_workspace *w) {
  for (int i = 0; i < MN_SCRATCHES; i++) w->device->free(w->scratch[i]);
  for (size_t i = 0; i < sizeof w->form / sizeof *w->form; i++) w->device->free(w->form[i].form);
  mn_pool_free(w->pool);
}

bool mn_on_cpu(const mn_ctx *mn) { return !mn_work((mn_ctx *)mn)->device->library; }
int mn_precision(const mn_ctx *mn) { return mn_work((mn_ctx *)mn)->precision; }
const mn_bf16 *mn_bf16_of(const mn_ctx *mn) { return mn_work((mn_ctx *)mn)->bf16; }

/* ---- threads ---- */

int mn_threads(mn_ctx *mn) { return mn_work(mn)->threads; }

bool mn_parallel_pays(mn_ctx *mn, double work) {
  const mn_workspace *w = mn_work(mn);
  return work > 50000 && w->threads > 1 && !w->in_batch_parallel;
}

static mn_pool *pool_of(mn_workspace *w) {
  if (w->threads > 1 && !w->pool) w->pool = mn_pool_new(w->threads - 1);
  return w->pool;
}

void mn_parallel_for(mn_ctx *mn, int n, mn_job *f, void *arg) {
  mn_workspace *w = mn_work(mn);
  mn_pool_run(n < 2 || w->in_batch_parallel ? NULL : pool_of(w), n, f, arg);
}

void mn_parallel_ops(mn_ctx *mn, int n, mn_job *f, void *arg) {
  mn_workspace *w = mn_work(mn);
  mn_pool *pool = pool_of(w);
  w->in_batch_parallel = true;
  mn_pool_run(pool, n, f, arg);
  w->in_batch_parallel = false;
}

unsigned mn_flush_all(mn_ctx *mn) {
  mn_workspace *w = mn_work(mn);
  if (w->in_plan && !w->in_batch_parallel) return ~0u;          /* to ask takes as long as a small op */
  const unsigned before = mn_flush();              /* first: this thread is one of OpenMP's, too */
  if (!w->flushes && w->threads > 1) {             /* its others keep it */
    MN_PRAGMA(omp parallel num_threads(w->threads))
    mn_flush();
    w->flushes = true;
  }
  return before;
}

/* An op takes its scratch before anything else can go wrong, and has no way to fail: it is left from here. */
int mn_do(mn_ctx *mn, void (*pass)(mn_call *c), mn_call *c) {
  const unsigned before = mn_flush_all(mn);
  if (_setjmp(mn_work(mn)->unless_scratch)) {
    mn_work(mn)->constant = NULL;                  /* a recurrence may have been left */
    mn_unflush(before);
    return -1;
  }
  pass(c);
  mn_unflush(before);
  return 0;
}

/* ---- memory ---- */

void mn_poison(const mn_device *on, void *p, size_t bytes) {
#ifdef MN_POISON
  if (!on->library) memset(p, 0xFF, bytes);
#else
  (void)on, (void)p, (void)bytes;
#endif
}

/* A GPU reports how much is free, which may be far less than the request. */
int mn_out_of_memory(mn_ctx *mn, const mn_device *d, const char *what, double bytes, const char *more) {
  char left[64] = "";
  if (d->library) snprintf(left, sizeof left, ", %.1f MB are free on device=%s", d->free_bytes() / 1e6, d->name);
  return mn_fail(mn, "%s: %s: %.3g MB%s%s%s", what, d->library ? "out of memory" : d->error(), bytes / 1e6, more, left,
                 *more ? " (mn.clear_tape() after each update frees computed tensors)" : "");
}

/* Bytes of n floats, so that what follows begins at a multiple of MN_ALIGN. */
static size_t bytes_of(long n) { return ((size_t)n * sizeof(float) + MN_ALIGN - 1) & ~(size_t)(MN_ALIGN - 1); }

float *mn_scratch(mn_ctx *mn, int which, long n) {
  mn_workspace *w = mn_work(mn);
  float **scratch = &w->scratch[which];
  long *have = &w->scratch_n[which];
  if (n > *have) {
    w->device->free(*scratch);
    n = n + n / 4;
    w->scratch_version++;
    *scratch = w->device->alloc(bytes_of(n));
    *have = *scratch ? n : 0;
    if (!*scratch) {
      mn_out_of_memory(mn, w->device, "scratch", (double)bytes_of(n), "");
      longjmp(w->unless_scratch, 1);
    }
  }
  mn_poison(w->device, *scratch, (size_t)n * sizeof(float));
  return *scratch;
}

/* ---- forms of matrices that stay the same for all rows ---- */

float *mn_constant_form(mn_ctx *mn, const float *B, long n, int how, bool *made) {
  mn_workspace *w = mn_work(mn);
  enum { FORMS = sizeof w->form / sizeof *w->form };
  *made = false;
  if (!w->constant || B < w->constant || B >= w->constant_end) return NULL;
  for (int i = 0; i < FORMS; i++) {
    const mn_form *f = &w->form[i];
    if (f->B == B && f->how == how && f->n == n && f->run == w->constant_run) return *made = true, f->form;
  }
  mn_form *f = &w->form[w->next_form++ % FORMS];
  if (f->cap < n) {
    w->device->free(f->form);
    f->form = w->device->alloc(bytes_of(n));
    f->cap = f->form ? n : 0;
  }
  f->B = f->form ? B : NULL;
  f->how = how, f->n = n, f->run = w->constant_run;
  return f->form;
}
