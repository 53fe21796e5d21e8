/* device_graphs.c -- runs of a plan as graphs: all their launches handed to the device in one piece.
** Runs of the same rows do the same work on the same buffers, so the second run is
** captured and later runs launch the captured graph: the host pays for one launch.  The first run is
** ordinary, because scratch gets its size there.  Devices without graphs, and plans that are being
** profiled, run the ordinary way. */
#include "internal.h"

void mn_graphs_drop(mn_plan *p) {
  for (int i = 0; i < p->n_graphs; i++)
    if (p->graph[i].at) p->ctx->work.device->forget(p->graph[i].at);
  p->n_graphs = 0;
}

/* The run of these rows; *fresh: there was none. */
static mn_graph *find(mn_plan *p, int t0, int t1, bool *fresh) {
  for (int i = 0; i < p->n_graphs; i++)
    if (p->graph[i].t0 == t0 && p->graph[i].t1 == t1) return &p->graph[i];
  if (mn_grow(p->ctx, &p->graph, &p->cap_graphs, p->n_graphs + 1, sizeof *p->graph)) return NULL;
  mn_graph *g = &p->graph[p->n_graphs++];
  *g = (mn_graph){ .t0 = t0, .t1 = t1 };
  *fresh = true;
  return g;
}

int mn_graphs_run(mn_plan *p, int t0, int t1, int (*work)(mn_plan *p, int t0, int t1)) {
  mn_ctx *mn = p->ctx;
  mn_device *d = mn->work.device;
  if (!d->capture || p->profile) return work(p, t0, t1);
  if (p->graphs_of != mn->work.scratch_version) mn_graphs_drop(p);      /* they would write to where scratch was */
  p->graphs_of = mn->work.scratch_version;
  bool fresh = false;
  mn_graph *g = find(p, t0, t1, &fresh);
  if (!g) return -1;
  if (fresh) return work(p, t0, t1);
  if (!g->at) {
    d->capture();
    const int result = work(p, t0, t1);
    void *made = d->captured();
    if (result && made) d->forget(made);
    if (result || !made) return result ? -1 : mn_check_device(mn, -1);
    g->at = made;
  }
  d->launch(g->at);
  return 0;
}
