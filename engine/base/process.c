/* process.c -- child processes: forks this process, sends the child's output to a file and waits until it ends.
** Time and memory that the child used come from the kernel's accounting. */
#define _GNU_SOURCE
#include "op.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/control_group.h"
#include "base/open_file.h"

enum { POLL_US = 1000 };

/* OMP_PROC_BIND leaves a first thread one processor, which children would share: they may use all that this process began with. */
static void unbind(void) {
  int ids[CPU_SETSIZE];
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int place = 0; place < omp_get_num_places(); place++) {
    const int n = omp_get_place_num_procs(place);
    if (n > CPU_SETSIZE) return;
    omp_get_place_proc_ids(place, ids);
    for (int i = 0; i < n; i++) if (ids[i] < CPU_SETSIZE) CPU_SET(ids[i], &set);
  }
  if (CPU_COUNT(&set)) sched_setaffinity(0, sizeof set, &set);
}

/* Fork this process: 0 in the child, the child's pid here, -1 on failure.  What the child prints goes to the end of
** the file `log`; it gets SIGTERM where this process dies, whatever kills it.  Only for a process without other threads:
** a child has none of them. */
int mn_process_fork(mn_ctx *mn, const char *log) {
  int out = mn_open_write(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (out < 0) return mn_fail(mn, "%s: cannot be opened: %s", log, strerror(errno));
  pid_t parent = getpid(), pid = fork();
  if (pid < 0) {
    int error = errno;
    close(out);
    return mn_fail(mn, "no new process: %s", strerror(error));
  }
  if (!pid) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(143);                       /* it died before that was said */
    mn_forked_signals();
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, 0);
    dup2(out, 1);
    dup2(out, 2);
    unbind();
    return 0;
  }
  close(out);
  return pid;
}

/* Wait until a child ends, at most that many seconds: 1 and fills *ended; 0: none did.  Without children it waits as long: a pool whose
** next job is another machine's pauses so. */
int mn_process_wait(mn_ctx *mn, double seconds, mn_ended *ended) {
  struct timespec pause = { 0, POLL_US * 1000L };
  double until = mn_clock(false) + seconds;
  for (;;) {
    int status;
    struct rusage used;
    pid_t pid = wait4(-1, &status, WNOHANG, &used);
    if (pid > 0) {
      ended->pid = pid;
      ended->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      ended->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      ended->cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
      ended->peak = 1024.0 * used.ru_maxrss;
      return 1;
    }
    if (pid < 0 && errno != ECHILD && errno != EINTR) return mn_fail(mn, "waiting for a process: %s", strerror(errno));
    if (mn_clock(false) >= until || mn_interrupted()) return 0;
    nanosleep(&pause, NULL);
  }
}

/* Send SIGTERM (or SIGKILL) to a child that has not been waited for; ignores 0 and -1, which kill() takes for groups. */
void mn_process_stop(int pid, bool at_once) { if (pid > 0) kill(pid, at_once ? SIGKILL : SIGTERM); }

/* Processors that this process may run on: as it began, since OMP_PROC_BIND leaves its first thread a single one; fewer where its control
** group has less time than theirs. */
int mn_cores(void) {
  static int cores;                                   /* two threads would write the same number */
  if (!cores) {
    double all = omp_get_num_procs(), time = ceil(mn_group_processors());
    cores = (int)(time < all && time >= 1 ? time : all);
  }
  return cores;
}

/* End this process at once with a status, leaving what its parent had half written in buffers alone. */
void mn_process_exit(int status) { _exit(status); }
