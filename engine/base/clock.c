/* clock.c -- the time, and waiting. */
#include <time.h>
#include "mneme.h"

/* Sleep for that many seconds, or until a signal arrives. */
void mn_sleep(double seconds) {
  struct timespec t = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };
  if (seconds > 0) nanosleep(&t, NULL);
}

/* Seconds: since some moment in the past, never turned back; or, wall, since 1970. */
double mn_clock(bool wall) {
  struct timespec t;
  clock_gettime(wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
