/* thread_pool.c -- a few threads that spin for their next job: see thread_pool.h. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "denormals.h"
#include "thread_pool.h"

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() ((void)0)
#endif

enum { SPINS = 4000, MOST = 15,            /* about 40 microseconds of waiting before sleep */
       LATE = 64, LONG = 2000 };          /* of the caller: before it does another's share; before it lets others run */

typedef struct thread_state {
  mn_pool *pool;
  int worker;
  _Alignas(64) atomic_uint taken;          /* the last job of which somebody has taken this thread's share */
} thread_state;

struct mn_pool {
  int others;                              /* threads besides the caller */
  pthread_t thread[MOST];
  thread_state state[MOST];
  pthread_mutex_t lock;
  pthread_cond_t wake;
  atomic_bool over;
  /* What changes hands for a job lies on one cache line there and on one back: each costs a tenth of a
  ** microsecond, and a shared counter of pieces would cost one a piece. */
  _Alignas(64) atomic_uint job;            /* raised for every job */
  atomic_int sleepers;
  int n;
  mn_job *f;
  void *arg;
  _Alignas(64) atomic_int busy;            /* workers that have not finished it */
};

static void run_share(mn_pool *t, int worker) {
  int all = t->others + 1;
  for (int i = t->n * worker / all; i < t->n * (worker + 1) / all; i++) t->f(t->arg, i, worker);
}

/* A share is taken once a job, by its thread or, where that is late, by the caller: on a busy machine it may not run for
** milliseconds.  A worker that has taken the job finishes it; until then f, arg and n do not change. */
static bool take(thread_state *m, unsigned job) {
  unsigned before = job - 1;
  return atomic_compare_exchange_strong_explicit(&m->taken, &before, job, memory_order_acquire, memory_order_relaxed);
}

/* Until another job than `seen` is there. */
static void await(mn_pool *t, unsigned seen) {
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load_explicit(&t->job, memory_order_acquire) != seen) return;
    PAUSE();
  }
  pthread_mutex_lock(&t->lock);
  atomic_fetch_add(&t->sleepers, 1);
  while (atomic_load(&t->job) == seen) pthread_cond_wait(&t->wake, &t->lock);
  atomic_fetch_sub(&t->sleepers, 1);
  pthread_mutex_unlock(&t->lock);
}

/* A new thread inherits its maker's processors: where OMP_PROC_BIND bound that to one, both would share it. */
static void settle(int worker) {
  int places = omp_get_num_places(), place = places ? worker % places : 0;
  if (!places) return;
  int n = omp_get_place_num_procs(place), *ids = malloc(sizeof *ids * (size_t)n);
  if (!ids) return;
  omp_get_place_proc_ids(place, ids);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < n; i++) if (ids[i] < CPU_SETSIZE) CPU_SET(ids[i], &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  free(ids);
}

static void *thread_main(void *arg) {
  thread_state *me = arg;
  mn_pool *t = me->pool;
  settle(me->worker);
  mn_flush();
  for (unsigned seen = 0;;) {
    await(t, seen);
    seen = atomic_load_explicit(&t->job, memory_order_acquire);
    if (atomic_load(&t->over)) return NULL;
    if (!take(me, seen)) continue;
    run_share(t, me->worker);
    atomic_fetch_sub_explicit(&t->busy, 1, memory_order_release);
  }
}

static void raise_job(mn_pool *t) {
  atomic_fetch_add(&t->job, 1);
  if (!atomic_load(&t->sleepers)) return;
  pthread_mutex_lock(&t->lock);
  pthread_cond_broadcast(&t->wake);
  pthread_mutex_unlock(&t->lock);
}

mn_pool *mn_pool_new(int others) {
  mn_pool *t = aligned_alloc(64, (sizeof *t + 63) & ~(size_t)63);
  if (!t) return NULL;
  *t = (mn_pool){ .others = 0 };
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->wake, NULL);
  for (; t->others < others && t->others < MOST; t->others++) {
    thread_state *one = &t->state[t->others];
    *one = (thread_state){ .pool = t, .worker = t->others + 1 };
    if (pthread_create(&t->thread[t->others], NULL, thread_main, one)) break;
  }
  return t;
}

void mn_pool_free(mn_pool *t) {
  if (!t) return;
  atomic_store(&t->over, true);
  raise_job(t);
  for (int i = 0; i < t->others; i++) pthread_join(t->thread[i], NULL);
  pthread_mutex_destroy(&t->lock);
  pthread_cond_destroy(&t->wake);
  free(t);
}

void mn_pool_run(mn_pool *t, int n, mn_job *f, void *arg) {
  if (!t || !t->others) {
    for (int i = 0; i < n; i++) f(arg, i, 0);
    return;
  }
  t->f = f;
  t->arg = arg;
  t->n = n;
  atomic_store_explicit(&t->busy, t->others, memory_order_relaxed);
  raise_job(t);
  run_share(t, 0);
  for (int spins = 1; atomic_load_explicit(&t->busy, memory_order_acquire); spins++) {
    PAUSE();
    if (spins == LATE) {
      unsigned job = atomic_load_explicit(&t->job, memory_order_relaxed);
      for (int i = 0; i < t->others; i++) {
        if (!take(&t->state[i], job)) continue;
        run_share(t, i + 1);
        atomic_fetch_sub_explicit(&t->busy, 1, memory_order_relaxed);
      }
    } else if (spins > LONG) {
      sched_yield();
    }
  }
}
