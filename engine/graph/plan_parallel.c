/* plan_parallel.c -- runs successive calls of a plan with each thread on its own share of the environments.
** Acting in eight environments is many small ops.  If the threads divide each op, they synchronise after each and
** then read rows that another thread has just written; if each has its own environments, they synchronise once after
** all the ops.  Each thread then reads all weights, which pays only with several environments per thread.
** An op that is independent per row gets a call with these environments only; one that runs along time gets the
** whole call and the range of environments (b0, b1), as it gets the range of rows. */
#include "internal.h"
#include "numerics/packed_gemm.h"
#include "base/denormals.h"

enum { ENVS = 4 };                            /* of a thread, at least */

/* The environments of one row of time that a call computes: its first tensors are [1,B,...]; 0: others. */
static int batch_of(const mn_command *k) {
  const mn_call *c = k->call;
  const mn_arg *x = &c->in[0];
  if ((c->time != MN_PER_ROW && c->time != MN_SCAN) || !x->timed || x->ndim < 3) return 0;
  if (c->time == MN_SCAN) return x->shape[1];
  for (int i = 0; i < c->n_in + c->n_out; i++) {
    const mn_arg *a = i < c->n_in ? &c->in[i] : &c->out[i - c->n_in];
    if (a->data && a->timed && (a->ndim < 3 || a->shape[1] != x->shape[1])) return 0;
  }
  return x->shape[1];
}

/* The call's row t, environments from .. end-1, as a call of its own. */
static mn_call share_of(const mn_command *k, int t, int from, int end) {
  mn_call c = *k->rows;
  mn_slice_rows(k, &c, t, t + 1);
  if (c.time == MN_SCAN) {
    c.b0 = from;
    c.b1 = end;
    return c;
  }
  for (int i = 0; i < c.n_in + c.n_out; i++) {
    mn_arg *a = i < c.n_in ? &c.in[i] : &c.out[i - c.n_in];
    if (!a->data || !a->timed) continue;
    const long row = a->n / a->shape[1], item = mn_item(a->dtype);
    a->data = (float *)((char *)a->data + item * row * from);
    a->shape[1] = end - from;
    a->n = row * (end - from);
  }
  return c;
}

/* The work of one row of a command; 0: it cannot be run so. */
static double work_of(const mn_command *k, int B) {
  if (!k->call->kernel->batch_parallel || batch_of(k) != B) return 0;
  const mn_call row = share_of(k, 0, 0, B);
  return k->call->kernel->batch_parallel(&row);
}

/* How many commands from i on can be run so; those between that have nothing to do by rows go along. */
static int batch_parallel_from(const mn_plan *p, int i) {
  const int B = batch_of(&p->command[i]);
  int calls = 0, end = i;
  double work = 0, more;
  for (int j = i; B && j < p->n_commands; j++) {
    if (!mn_runs_by_rows(p->command[j].call)) continue;
    if (!(more = work_of(&p->command[j], B))) break;
    work += more;
    calls++;
    end = j + 1;
  }
  return calls > 1 && work >= MN_ONE_THREAD_WORK && B >= ENVS * p->ctx->work.threads ? end - i : 0;
}

void mn_find_batch_parallel(mn_plan *p) {
  for (int i = 0; i < p->n_commands; i += p->command[i].batch_parallel ? p->command[i].batch_parallel : 1)
    p->command[i].batch_parallel = p->ctx->work.threads > 1 ? batch_parallel_from(p, i) : 0;
}

typedef struct row_job { mn_plan *p; int first, n, t, B, shares; } row_job;

static void share_task(void *arg, int i, int worker) {
  (void)worker;
  const row_job *j = arg;
  const int from = j->B * i / j->shares, end = j->B * (i + 1) / j->shares;
  for (int k = j->first; k < j->first + j->n && from < end; k++) {
    const mn_command *command = &j->p->command[k];
    if (!mn_runs_by_rows(command->call)) continue;
    mn_call c = share_of(command, j->t, from, end);
    command->call->kernel->forward(&c);
  }
}

int mn_run_batch_parallel(mn_plan *p, int i, int t) {
  mn_ctx *mn = p->ctx;
  const int n = p->command[i].batch_parallel;
  if (!n || p->profile) return 0;
  row_job job = { p, i, n, t, p->command[i].call->in[0].shape[1], mn->work.threads };
  const unsigned before = mn_flush_all(mn);
  mn_parallel_ops(mn, job.shares, share_task, &job);
  mn_unflush(before);
  return n;
}
