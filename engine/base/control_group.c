/* control_group.c -- reads the limits of the process's control group, of either version: the least of its own and of those above it. */
#include "base/control_group.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The numbers in a file: up to two.  How many there are; of "max" none. */
static int numbers_in(const char *folder, const char *file, double *a, double *b) {
  char path[2048];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *f = fopen(path, "re");
  int n = f ? fscanf(f, "%lf %lf", a, b) : 0;
  if (f) fclose(f);
  return n;
}

static double memory(const char *folder) {
  double bytes, none;
  if (numbers_in(folder, "memory.max", &bytes, &none) > 0 || numbers_in(folder, "memory.limit_in_bytes", &bytes, &none) > 0) return bytes;
  return INFINITY;
}

static double processors(const char *folder) {
  double quota, period, none;
  int n = numbers_in(folder, "cpu.max", &quota, &period);
  if (n < 2 && (numbers_in(folder, "cpu.cfs_quota_us", &quota, &none) < 1 || numbers_in(folder, "cpu.cfs_period_us", &period, &none) < 1)) return INFINITY;
  return quota > 0 && period > 0 ? quota / period : INFINITY;       /* -1: no limit */
}

/* The least limit of the groups that a line of /proc/self/cgroup names and of those above it: ID:CONTROLLERS:/PATH. */
static double least_of(const char *controller, double (*limit)(const char *folder)) {
  char line[1024], path[2048], *slash;
  double least = INFINITY;
  FILE *groups = fopen("/proc/self/cgroup", "re");
  while (groups && fgets(line, sizeof line, groups)) {
    line[strcspn(line, "\n")] = 0;
    char *list = strchr(line, ':'), *at = list ? strchr(list + 1, ':') : NULL;
    if (!at) continue;
    *at++ = 0;
    *list++ = 0;
    char wanted[64], held[1024];
    snprintf(wanted, sizeof wanted, ",%s,", controller);
    snprintf(held, sizeof held, ",%s,", list);
    if (*list && !strstr(held, wanted)) continue;                   /* version 2 has one line without controllers */
    snprintf(path, sizeof path, "/sys/fs/cgroup%s%s%s", *list ? "/" : "", list, at);
    size_t root = strlen(path) - strlen(at);
    for (;;) {
      double bytes = limit(path);
      if (bytes < least) least = bytes;
      slash = strrchr(path, '/');
      if (!slash || (size_t)(slash - path) < root) break;
      *slash = 0;
    }
  }
  if (groups) fclose(groups);
  return least;
}

double mn_group_memory(void) { return least_of("memory", memory); }
double mn_group_processors(void) { return least_of("cpu", processors); }
