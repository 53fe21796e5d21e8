/* signals.c -- Ctrl-C as a flag.  Lua's own handler would set a hook, which compiled loops never check.  The
** trainer polls this flag after each update, writes a checkpoint and ends.  A program that does not poll (a
** script's own loop that never ends) says how to stop it, and is stopped after a while.
** A signal is a request, once: `timeout`, Slurm, systemd, a terminal and a sweep each tell a process what its whole group was told, too. */
#include "mneme.h"
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SAY_AFTER = 5, END_AFTER = 60 };       /* seconds; END_AFTER is added to ten times the longest span between two polls */
enum { HURRY = 700000 };                      /* microseconds in which what loses nothing may finish: see mn_lose_nothing */
static const double SAME = 0.05;              /* seconds within which a second SIGINT is the first one again: no hand is as fast */

static volatile sig_atomic_t caught, said;
static volatile double first, first_int;      /* when they came, 0: not yet; kept while the process ends, for what comes then */
static double polled, longest;
static bool hurries;
static const char *volatile unfinished;       /* a file */

/* From here on a signal that ends a process that watches signals removes this file, too; NULL: none. */
void mn_remove_if_ended(const char *path) { unfinished = path; }

static void end_by(int number) {
  if (unfinished) unlink(unfinished);
  signal(number, SIG_DFL);
  raise(number);
}

/* What batch systems send before the time is up (USR1, USR2, XCPU), SIGHUP (the terminal is gone) and SIGPWR count as SIGTERM.  One that
** comes again is the same request; a second SIGINT, and any that comes after the sentence below, is another: it ends the process.
** SIGXCPU never is: the kernel sends it every second. */
static void note(int number) {
  const double now = mn_clock(false);
  if (first == 0) {
    first = now;
    caught = number == SIGINT ? SIGINT : SIGTERM;
    said = 0;
    if (hurries) setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { 0, HURRY } }, NULL);
    else alarm(SAY_AFTER);
  } else if ((number == SIGINT && first_int > 0 && now - first_int > SAME) || (now - first > SAY_AFTER && number != SIGXCPU)) end_by(number);
  if (number == SIGINT && first_int == 0) first_int = now;
}

static void say(const char *text) { if (write(STDERR_FILENO, text, strlen(text)) < 0) return; }

/* The flag was not read: first a sentence, then the end that the signal has without us. */
static void unread(int number) {
  (void)number;
  if (hurries) end_by(caught);
  if (!said) {
    said = 1;
    say("\nmneme: finishing first; another signal (Ctrl-C) stops at once, without saving\n");
    alarm(END_AFTER + 10 * (unsigned)longest);
  } else {
    say("mneme: it did not finish (a loop of the script that never ends?): stopped without saving\n");
    end_by(caught);
  }
}

static void handle(int number, void (*handler)(int)) {
  struct sigaction act;
  memset(&act, 0, sizeof act);
  act.sa_handler = handler;
  act.sa_flags = SA_RESTART;
  sigfillset(&act.sa_mask);                   /* one at a time */
  sigaction(number, &act, NULL);
}

static void all_to(void (*handler)(int)) {
  static const int watched[] = { SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGXCPU, SIGPWR };
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
    struct sigaction before;
    if (!sigaction(watched[i], NULL, &before) && before.sa_handler != SIG_IGN) handle(watched[i], handler);
  }
}

/* From now on a signal only sets the flag, and another request (see note) kills.  A broken pipe
** must not end a training either: `mneme run ... 2>&1 | head`.  Signals that were ignored when the program
** began (nohup, a script's background jobs) stay ignored.  off: as it was, and the flag cleared; but where a signal came, those that repeat
** it stay without effect, or what is told twice would die while it ends. */
void mn_watch_signals(bool on) {
  static struct sigaction pipe_before;
  static bool watching;
  alarm(0);
  handle(SIGALRM, on ? unread : SIG_DFL);
  caught = 0, polled = mn_clock(false), longest = 0, hurries = false;
  if (on) first = first_int = 0;
  if (on || first == 0) all_to(on ? note : SIG_DFL);
  if (on && !watching) sigaction(SIGPIPE, NULL, &pipe_before);
  if (on) signal(SIGPIPE, SIG_IGN);
  else if (watching) sigaction(SIGPIPE, &pipe_before, NULL);
  watching = on;
}

/* true, until mn_watch_signals: a signal that is not read within HURRY ends the process: nothing would be lost that the same command does not find. */
void mn_lose_nothing(bool on) { hurries = on; }

/* In a child: signals as they were, and its end where one came since it was forked. */
void mn_forked_signals(void) {
  all_to(SIG_DFL);
  if (caught) _exit(128 + SIGTERM);
  mn_watch_signals(false);
}

int mn_interrupted(void) {
  double now = mn_clock(false);
  if (now - polled > longest) longest = now - polled;
  polled = now;
  if (caught) alarm(0);
  return caught;
}
