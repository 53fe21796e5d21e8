/* row_slice.c -- a call of a plan cut to some rows of time. */
#include "internal.h"

bool mn_made_when_read(const mn_call *c) { return c->time == MN_FINAL || c->time == MN_ON_DEMAND; }

bool mn_carries_time(const mn_call *c) {
  for (int i = 0; i < c->n_in; i++) if (c->in[i].data && c->in[i].timed) return true;
  return false;
}

bool mn_runs_by_rows(const mn_call *c) { return mn_carries_time(c) && c->time != MN_FIRST && !mn_made_when_read(c); }
bool mn_runs_when_read(const mn_call *c) { return mn_carries_time(c) && mn_made_when_read(c); }

/* Make c, k->rows or a copy of it, the call for rows t0 .. t1-1: arguments that carry time begin at row t0 (the op never notices),
** except for ops that walk time, which see the whole and the numbers of the rows. */
void mn_slice_rows(const mn_command *k, mn_call *c, int t0, int t1) {
  const mn_call *whole = k->call;
  c->t0 = t0;
  c->t1 = t1;
  if (whole->time == MN_SCAN || mn_made_when_read(whole)) return;
  for (int i = 0; i < c->n_in + c->n_out; i++) {
    bool is_in = i < c->n_in;
    mn_arg *a = is_in ? &c->in[i] : &c->out[i - c->n_in];
    const mn_arg *w = is_in ? &whole->in[i] : &whole->out[i - c->n_in];
    if (!w->data || !w->timed) continue;
    long row = w->n / w->shape[0], item = mn_item(w->dtype);
    a->data = (float *)((char *)w->data + row * item * t0);
    a->shape[0] = t1 - t0;
    a->n = row * (t1 - t0);
  }
  if (k->time_letter) DIM(c, k->time_letter) = t1 - t0;
}
