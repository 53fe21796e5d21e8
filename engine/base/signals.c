/* signals.c -- Ctrl-C as a flag.  Lua's own handler would set a hook, which compiled loops never check.  The
** trainer polls this flag after each update, writes a checkpoint and ends. */
#include "mneme.h"
#include <signal.h>
#include <string.h>

static volatile sig_atomic_t caught;

/* SIGUSR1 (what a batch system sends before the time is up) and SIGHUP (the terminal is gone) count as SIGTERM. */
static void note(int number) { caught = number == SIGINT ? SIGINT : SIGTERM; }

/* From now on the first signal of each kind only sets the flag, and the second one kills.  A broken pipe
** must not end a training either: `mneme run ... 2>&1 | head`.  Signals that were ignored when the program
** began (nohup, a script's background jobs) stay ignored.  off: as it was, and the flag cleared. */
void mn_watch_signals(bool on) {
  static const int watched[] = { SIGINT, SIGTERM, SIGUSR1, SIGHUP };
  struct sigaction act;
  memset(&act, 0, sizeof act);
  act.sa_handler = on ? note : SIG_DFL;
  act.sa_flags = SA_RESTART | (on ? (int)SA_RESETHAND : 0);
  sigemptyset(&act.sa_mask);
  caught = 0;
  for (int i = 0; i < 4; i++) {
    struct sigaction before;
    if (!sigaction(watched[i], NULL, &before) && before.sa_handler != SIG_IGN) sigaction(watched[i], &act, NULL);
  }
  signal(SIGPIPE, on ? SIG_IGN : SIG_DFL);
}

int mn_interrupted(void) { return caught; }
