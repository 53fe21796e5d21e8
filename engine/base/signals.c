/* signals.c -- Ctrl-C as a flag.  Lua's own handler would set a hook, which compiled loops never check.  The
** trainer polls this flag after each update, writes a checkpoint and ends.  A program that does not poll (a
** script's own loop that never ends) says how to stop it, and is stopped after a while. */
#include "mneme.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { SAY_AFTER = 5, END_AFTER = 60 };       /* seconds; END_AFTER is added to ten times the longest span between two polls */

static volatile sig_atomic_t caught, said;
static double polled, longest;

/* SIGUSR1 (what a batch system sends before the time is up) and SIGHUP (the terminal is gone) count as SIGTERM. */
static void note(int number) {
  caught = number == SIGINT ? SIGINT : SIGTERM;
  said = 0;
  alarm(SAY_AFTER);
}

static void say(const char *text) { if (write(STDERR_FILENO, text, strlen(text)) < 0) return; }

/* The flag was not read: first a sentence, then the end that the signal has without us. */
static void unread(int number) {
  (void)number;
  if (!said) {
    said = 1;
    say("\nmneme: finishing first; a second signal (Ctrl-C) stops at once, without saving\n");
    alarm(END_AFTER + 10 * (unsigned)longest);
  } else {
    say("mneme: it did not finish (a loop of the script that never ends?): stopped without saving\n");
    signal(caught, SIG_DFL);
    raise(caught);
  }
}

static void handle(int number, void (*handler)(int), int flags) {
  struct sigaction act;
  memset(&act, 0, sizeof act);
  act.sa_handler = handler;
  act.sa_flags = SA_RESTART | flags;
  sigemptyset(&act.sa_mask);
  sigaction(number, &act, NULL);
}

/* From now on the first signal of each kind only sets the flag, and the second one kills.  A broken pipe
** must not end a training either: `mneme run ... 2>&1 | head`.  Signals that were ignored when the program
** began (nohup, a script's background jobs) stay ignored.  off: as it was, and the flag cleared. */
void mn_watch_signals(bool on) {
  static const int watched[] = { SIGINT, SIGTERM, SIGUSR1, SIGHUP };
  static struct sigaction pipe_before;
  static bool watching;
  alarm(0);
  handle(SIGALRM, on ? unread : SIG_DFL, 0);
  caught = 0, polled = mn_clock(false), longest = 0;
  for (int i = 0; i < 4; i++) {
    struct sigaction before;
    if (!sigaction(watched[i], NULL, &before) && before.sa_handler != SIG_IGN) handle(watched[i], on ? note : SIG_DFL, on ? (int)SA_RESETHAND : 0);
  }
  if (on && !watching) sigaction(SIGPIPE, NULL, &pipe_before);
  if (on) signal(SIGPIPE, SIG_IGN);
  else if (watching) sigaction(SIGPIPE, &pipe_before, NULL);
  watching = on;
}

int mn_interrupted(void) {
  double now = mn_clock(false);
  if (now - polled > longest) longest = now - polled;
  polled = now;
  if (caught) alarm(0);
  return caught;
}
