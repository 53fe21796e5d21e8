/* thread_pool.h -- threads for work of a few microseconds, as one step of acting is made of.
** Entering OpenMP costs about as much as such work; a team's threads spin on a counter for a while after each
** job, so that the next one starts within a fraction of a microsecond, and sleep when none comes. */
#ifndef MN_TEAM_H
#define MN_TEAM_H
#include "mneme.h"

/* f(arg, i, worker) for i = 0 .. n-1, each once, on the calling thread and the team's others; returns when all
** are done.  Which worker, 0 .. mn_threads-1, does which is not said. */
typedef void mn_job(void *arg, int i, int worker);
void mn_team_run(mn_ctx *mn, int n, mn_job *f, void *arg);

/* The same, where f does whole ops: what they would share out is done by the thread that asks. */
void mn_team_apart(mn_ctx *mn, int n, mn_job *f, void *arg);

#endif
