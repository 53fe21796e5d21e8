/* thread_pool.h -- threads for work of a few microseconds, such as one step of acting.
** Entering OpenMP costs about as much as such work.  A pool's threads spin on a counter for a while after each job, so
** that the next one starts within a fraction of a microsecond, and sleep when none comes. */
#ifndef MN_THREAD_POOL_H
#define MN_THREAD_POOL_H
#include "op.h"

typedef struct mn_pool mn_pool;

/* A pool of that many threads besides the caller's (fewer where the system refuses more); NULL: no memory. */
mn_pool *mn_pool_new(int others);
void mn_pool_free(mn_pool *pool);

/* f(arg, i, worker) for i = 0 .. n-1, each once, on the calling thread and the pool's; returns when all are done.
** worker: 0 .. others.  pool NULL: all on the calling thread. */
void mn_pool_run(mn_pool *pool, int n, mn_job *f, void *arg);

#endif
