/* workers.c -- processes of another program that share memory with this one: environments of Gymnasium step in them.
** A worker has three descriptors: 3, from which it reads, 4, to which it writes, and 5, the shared memory.  It reads lines and answers
** with lines.  A round is a number in the worker's slot of the shared memory, which it repeats when it is done; a byte goes to who sleeps, for a
** wake-up costs as much as several cheap steps.  Before it sleeps, each side looks for a moment, if there are processors for all and looking has
** paid lately.  A byte that comes late, or is missed, only costs time: both sides go by the numbers.  What it prints goes to a file without a name, whose end
** an error quotes.  Signals are for this process, which decides: a worker ignores them, ends when descriptor 3 does, and is killed with us. */
#define _GNU_SOURCE
#include "op.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __x86_64__
enum { ORDERED = 1 };            /* what a worker has written is there once its number is; elsewhere a byte must come first */
#else
enum { ORDERED = 0 };
#endif
enum { LAST_WORDS = 360, KILL_AFTER_MS = 2000, LOOK_US = 150, MOST_BLIND = 1024, AGAIN_MS = 2, LOOK_AFTER = 1024, MOST_PRINTED = 1 << 20 };

/* What both sides see of a worker: 64 bytes, so that no two share a cache line. */
typedef struct slot {
  uint8_t go, done;              /* the number of the round that is wanted, and of the last that is done */
  uint8_t asleep, waiting;       /* the worker reads descriptor 3; we wait for a byte of it */
  uint8_t answer;                /* '.', or '!': a line follows */
  uint8_t look;                  /* there are processors for the workers */
  uint8_t none[58];
} slot;

typedef struct worker {
  pid_t pid;
  int at;                        /* our end of descriptors 3 and 4 */
  int log;
  char *line;                    /* what was heard last */
  size_t room, held;             /* of line; bytes read */
} worker;

struct mn_workers {
  int n, memory;
  void *shared;
  size_t bytes;
  worker *each;
  slot *slots;                   /* at the beginning of the shared memory */
  unsigned rounds;
  int blind, rest;               /* rounds without a look after one that did not pay; those that are left */
  char why[LAST_WORDS + 128];
};

static const int ours[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU, SIGPWR };

/* In the child: nothing but descriptors 0 to 5 is left to the other program. */
static void become(const char *const *argv, int end, int log, int memory, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(143);
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) signal(ours[i], SIG_IGN);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  const int from[] = { end, log, memory };          /* out of the way of 3, 4 and 5 first */
  int high[3];
  for (int i = 0; i < 3; i++) high[i] = fcntl(from[i], F_DUPFD, 16);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, 0);
  dup2(high[1], 1), dup2(high[1], 2), dup2(high[0], 3), dup2(high[0], 4), dup2(high[2], 5);
  if (syscall(SYS_close_range, 6, ~0u, 0) < 0) for (int fd = 6; fd < 1024; fd++) close(fd);
  execvp(argv[0], (char *const *)(uintptr_t)argv);
  dprintf(2, "%s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

/* What a worker printed last, for an error. */
static void last_words(const worker *w, char *out, size_t size) {
  const off_t end = w->log >= 0 ? lseek(w->log, 0, SEEK_END) : 0;
  const off_t from = end > (off_t)size - 1 ? end - (off_t)size + 1 : 0;
  const ssize_t got = end > 0 ? pread(w->log, out, size - 1, from) : 0;
  out[got > 0 ? got : 0] = 0;
  if (from > 0) {                                   /* begin with a whole line, if there is one */
    char *line = strchr(out, '\n');
    if (line && line[1]) memmove(out, line + 1, strlen(line + 1) + 1);
  }
  for (size_t n = strlen(out); n && (out[n - 1] == '\n' || out[n - 1] == ' '); ) out[--n] = 0;
}

/* Worker i has gone: how it ended and what it printed. */
static int gone(mn_ctx *mn, mn_workers *all, int i) {
  worker *w = &all->each[i];
  char words[LAST_WORDS], how[64] = "ended";
  int status = 0;
  if (w->pid > 0) {
    pid_t done = 0;
    for (int ms = 0; ms < KILL_AFTER_MS && (done = waitpid(w->pid, &status, WNOHANG)) == 0; ms++) usleep(1000);
    if (done == 0) {
      kill(w->pid, SIGKILL);
      waitpid(w->pid, NULL, 0);
      snprintf(how, sizeof how, "has closed its connection");
    } else
    if (WIFSIGNALED(status)) snprintf(how, sizeof how, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WIFEXITED(status)) snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(status));
    w->pid = 0;
  }
  last_words(w, words, sizeof words);
  snprintf(all->why, sizeof all->why, "%s%s%s", how, *words ? ":\n" : "", words);
  return mn_fail(mn, "worker %d of %d %s", i, all->n, all->why);
}

/* Start n processes argv[0] argv[1] ... NULL; all share `bytes` of memory that nobody has written yet. */
mn_workers *mn_workers_new(mn_ctx *mn, int n, const char *const *argv) {
  mn_workers *all = calloc(1, sizeof *all);
  if (all) all->each = calloc((size_t)n, sizeof *all->each);
  if (!all || !all->each) {
    free(all);
    mn_fail(mn, "out of memory: %d workers", n);
    return NULL;
  }
  all->memory = memfd_create("mneme-workers", MFD_CLOEXEC);
  for (; all->memory >= 0 && all->n < n; all->n++) {
    worker *w = &all->each[all->n];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) break;
    w->at = ends[0];
    w->log = memfd_create("mneme-worker-log", MFD_CLOEXEC);
    if (w->log >= 0) fcntl(w->log, F_SETFL, O_APPEND);
    const pid_t parent = getpid();
    w->pid = w->log < 0 ? -1 : fork();
    if (w->pid == 0) become(argv, ends[1], w->log, all->memory, parent);
    const int error = errno;
    close(ends[1]);
    if (w->pid < 0) {
      close(w->at);
      if (w->log >= 0) close(w->log);
      errno = error;
      break;
    }
  }
  if (all->n == n) return all;
  mn_fail(mn, "worker %d of %d cannot be started: %s", all->n, n, strerror(errno));
  mn_workers_free(all);
  return NULL;
}

/* How many processors this process may use. */
static int processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) < 0 ? 1 : CPU_COUNT(&set);
}

/* Give all workers that much shared memory, of zeros, behind n slots; NULL on failure.  Once. */
void *mn_workers_memory(mn_ctx *mn, mn_workers *all, double bytes) {
  if (all->shared) { mn_fail(mn, "the workers' memory is there already"); return NULL; }
  const size_t front = sizeof(slot) * (size_t)all->n;
  if (!(bytes > 0 && bytes < 1e15) || ftruncate(all->memory, (off_t)(front + bytes)) < 0) {
    mn_fail(mn, "%.0f bytes of shared memory: %s", bytes, strerror(errno));
    return NULL;
  }
  void *p = mmap(NULL, front + (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, all->memory, 0);
  if (p == MAP_FAILED) { mn_fail(mn, "%.0f bytes of shared memory: %s", bytes, strerror(errno)); return NULL; }
  all->bytes = front + (size_t)bytes, all->shared = p, all->slots = p;
  for (int i = 0; i < all->n; i++) all->slots[i].look = ORDERED && all->n <= processors();
  return (char *)p + front;
}

/* Write all of it to worker i; the reader of a broken pipe has gone. */
static int say(mn_ctx *mn, mn_workers *all, int i, const char *data, size_t n) {
  while (n) {
    const ssize_t put = send(all->each[i].at, data, n, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return gone(mn, all, i);
    data += put, n -= (size_t)put;
  }
  return 0;
}

/* Wait until worker i has written, until that time of mn_clock. */
static int wait_for(mn_ctx *mn, mn_workers *all, int i, double until) {
  struct pollfd p = { all->each[i].at, POLLIN, 0 };
  for (;;) {
    const double left = until - mn_clock(false);
    if (left <= 0) {
      char words[LAST_WORDS];
      last_words(&all->each[i], words, sizeof words);
      return mn_fail(mn, "worker %d of %d has not answered in time%s%s", i, all->n, *words ? ":\n" : "", words);
    }
    const int ready = poll(&p, 1, left > 1e6 ? 1000000000 : (int)(1e3 * left) + 1);
    if (ready > 0) return 0;
    if (ready < 0 && errno != EINTR) return mn_fail(mn, "worker %d of %d: %s", i, all->n, strerror(errno));
  }
}

/* Tell worker i a line. */
int mn_workers_tell(mn_ctx *mn, mn_workers *all, int i, const char *line, double bytes) {
  return say(mn, all, i, line, (size_t)bytes) < 0 || say(mn, all, i, "\n", 1) < 0 ? -1 : 0;
}

/* The next line of worker i, valid until the next call; NULL with the error where it has gone, or says nothing for so many seconds. */
const char *mn_workers_hear(mn_ctx *mn, mn_workers *all, int i, double seconds) {
  worker *w = &all->each[i];
  const double until = mn_clock(false) + seconds;
  w->held = 0;
  for (;;) {
    if (w->held + 2 > w->room) {
      const size_t room = w->room ? 2 * w->room : 1 << 16;
      char *more = realloc(w->line, room);
      if (!more) { mn_fail(mn, "out of memory: a line of a worker"); return NULL; }
      w->line = more, w->room = room;
    }
    if (wait_for(mn, all, i, until) < 0) return NULL;
    const ssize_t got = read(w->at, w->line + w->held, w->room - w->held - 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) { gone(mn, all, i); return NULL; }
    w->held += (size_t)got;
    size_t late = 0;                                 /* bytes of rounds that were over */
    while (late < w->held && w->line[late] == '.') late++;
    memmove(w->line, w->line + late, w->held -= late);
    if (w->held && w->line[w->held - 1] == '\n') {
      w->line[w->held - 1] = 0;
      return w->line;
    }
  }
}

static uint8_t seen(const uint8_t *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
static void put(uint8_t *p, uint8_t x) { __atomic_store_n(p, x, __ATOMIC_SEQ_CST); }

/* Look for a moment whether worker i is done, and let others of this processor run meanwhile.  After a look that did not pay, ever fewer; after
** one in which somebody else took the processor, none for long. */
static bool look(mn_workers *all, slot *s) {
  if (!s->look || all->rest-- > 0) return false;
  const double start = mn_clock(false);
  double took = 0;
  bool done = false;
  while (!done && took < LOOK_US * 1e-6) {
    sched_yield();
    done = seen(&s->done) == s->go, took = mn_clock(false) - start;
  }
  const int twice = all->blind ? 2 * all->blind : 1;
  all->blind = took > 4e-6 * LOOK_US ? MOST_BLIND : done ? all->blind / 2 : twice < MOST_BLIND ? twice : MOST_BLIND;
  all->rest = done && all->blind < MOST_BLIND ? 0 : all->blind;
  return done;
}

/* Has a worker gone while we wait for another? */
static int another_gone(mn_ctx *mn, mn_workers *all) {
  for (int i = 0; i < all->n; i++) {
    struct pollfd p = { all->each[i].at, 0, 0 };
    if (poll(&p, 1, 0) > 0 && p.revents & POLLHUP) return gone(mn, all, i);
  }
  return 0;
}

/* Wait until worker i is done with the round, until that time of mn_clock. */
static int wait_done(mn_ctx *mn, mn_workers *all, int i, double until) {
  slot *s = &all->slots[i];
  worker *w = &all->each[i];
  if (ORDERED && (seen(&s->done) == s->go || look(all, s))) return 0;
  put(&s->waiting, 1);
  for (bool heard = ORDERED; !heard || seen(&s->done) != s->go; heard = true) {
    struct pollfd p = { w->at, POLLIN, 0 };
    const int ready = poll(&p, 1, AGAIN_MS);
    if (ready < 0 && errno != EINTR) return mn_fail(mn, "worker %d of %d: %s", i, all->n, strerror(errno));
    if (ready > 0) {
      char c;
      const ssize_t got = recv(w->at, &c, 1, MSG_PEEK);
      if (got == 0 || (got < 0 && errno != EINTR)) return gone(mn, all, i);
      if (got > 0 && c == '.' && recv(w->at, &c, 1, 0) <= 0) return gone(mn, all, i);
    } else {
      if (another_gone(mn, all) < 0 || (seen(&s->asleep) && say(mn, all, i, "s", 1) < 0)) return -1;
      if (mn_clock(false) > until) return wait_for(mn, all, i, 0);
    }
  }
  put(&s->waiting, !ORDERED);
  return 0;
}

/* One round of every worker.  Of the first that has a line to say the number from 1 is returned, for mn_workers_hear; 0: all is well;
** -1 with the error. */
int mn_workers_round(mn_ctx *mn, mn_workers *all, double seconds) {
  const double until = mn_clock(false) + seconds;
  int other = 0;
  for (int i = 0; i < all->n; i++) {
    if (!ORDERED) put(&all->slots[i].waiting, 1);
    put(&all->slots[i].go, (uint8_t)(all->slots[i].go + 1));
    if (seen(&all->slots[i].asleep) && say(mn, all, i, "s", 1) < 0) return -1;
  }
  struct stat printed;
  if (all->rounds++ % LOOK_AFTER == 0) for (int i = 0; i < all->n; i++)
    if (fstat(all->each[i].log, &printed) == 0 && printed.st_size > MOST_PRINTED && ftruncate(all->each[i].log, 0) < 0) break;
  for (int i = 0; i < all->n; i++) {
    if (wait_done(mn, all, i, until) < 0) return -1;
    if (all->slots[i].answer != '.' && !other) other = i + 1;
  }
  return other;
}

/* Ends all workers: those that do not end by themselves are killed. */
void mn_workers_free(mn_workers *all) {
  if (!all) return;
  for (int i = 0; i < all->n; i++) close(all->each[i].at);
  int ms = 0;                                        /* one span for all */
  for (int i = 0; i < all->n; i++) {
    worker *w = &all->each[i];
    while (w->pid > 0 && waitpid(w->pid, NULL, WNOHANG) == 0) {
      if (ms++ >= KILL_AFTER_MS) kill(w->pid, SIGKILL);
      usleep(1000);
    }
    if (w->log >= 0) close(w->log);
    free(w->line);
  }
  if (all->shared) munmap(all->shared, all->bytes);
  if (all->memory >= 0) close(all->memory);
  free(all->each);
  free(all);
}
