/* workspace.h -- what a context lends to kernels: threads, scratch memory, other forms of matrices, how products are computed.
** It knows nothing of tensors, tapes and plans. */
#ifndef MN_WORKSPACE_H
#define MN_WORKSPACE_H
#include <setjmp.h>
#include "device.h"
#include "error.h"
#include "op.h"
#include "thread_pool.h"

enum { MN_ALIGN = 64 };          /* bytes: where arrays begin */

/* A matrix in another form, for all rows of a recurrence. */
typedef struct mn_form { const float *B; int how; long n, cap; uint32_t run; float *form; } mn_form;

typedef struct mn_workspace {
  mn_error_text error;           /* first: error.c writes it */
  mn_device *device;
  int threads;
  mn_pool *pool;                 /* NULL until small work is shared out */
  bool in_batch_parallel;        /* now each thread runs ops of its own: graph/plan_parallel.c */
  bool flushes;                  /* OpenMP's threads flush denormals (denormals.h) */
  bool in_plan;                  /* so does this one, until the plan that runs has run */
  float *scratch[MN_SCRATCHES];
  long scratch_n[MN_SCRATCHES];
  uint32_t scratch_version;      /* raised when one of them moves */
  jmp_buf unless_scratch;        /* where the op that runs is left from: mn_do */
  mn_form form[16];
  unsigned next_form;
  const float *constant, *constant_end;    /* matrices that stay the same in this run of a recurrence; NULL: none */
  uint32_t constant_run, constant_runs;    /* its number, and the highest so far */
  int precision;
  const mn_bf16 *bf16;           /* how products are computed; NULL: in float32 */
} mn_workspace;

/* A context begins with it. */
static inline mn_workspace *mn_work(mn_ctx *mn) { return (mn_workspace *)mn; }

void  mn_workspace_close(mn_workspace *w);            /* what it holds is freed */
void  mn_parallel_ops(mn_ctx *mn, int n, mn_job *f, void *arg);          /* mn_parallel_for where f runs whole ops: each on its thread alone */
unsigned mn_flush_all(mn_ctx *mn);                    /* mn_flush here and on every thread of OpenMP: what was set here */
int   mn_do(mn_ctx *mn, void (*pass)(mn_call *c), mn_call *c);   /* run a kernel; -1: no memory for its scratch */
void  mn_poison(const mn_device *on, void *p, size_t bytes);     /* make check: it begins as NaN */
int   mn_out_of_memory(mn_ctx *mn, const mn_device *d, const char *what, double bytes, const char *more);   /* -1 and the error */

#endif
