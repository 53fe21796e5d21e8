/* device_cpu.c -- the CPU as a device: calls complete before they return, so there is nothing to wait for. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "device.h"

enum { ALIGN = 64 };

static int always(void) { return 0; }

/* The limit of a control group, which containers and batch systems set, in the file of one of its versions. */
static double group_limit(const char *line_begins, const char *root, const char *file) {
  char line[1024], path[2048], *slash;
  double least = INFINITY, bytes;
  FILE *groups = fopen("/proc/self/cgroup", "re");
  while (groups && fgets(line, sizeof line, groups)) {
    const char *at = strstr(line, line_begins);
    if (!at) continue;
    line[strcspn(line, "\n")] = 0;
    snprintf(path, sizeof path, "%s%s", root, at + strlen(line_begins));
    while ((slash = strrchr(path, '/')) && (size_t)(slash - path) >= strlen(root)) {      /* a group is limited by those above it */
      snprintf(slash, sizeof path - (size_t)(slash - path), "/%s", file);
      FILE *limit = fopen(path, "re");
      if (limit && fscanf(limit, "%lf", &bytes) == 1 && bytes < least) least = bytes;     /* "max": no number */
      if (limit) fclose(limit);
      *slash = 0;
    }
  }
  if (groups) fclose(groups);
  return least;
}

/* Some systems grant any amount of memory and kill the process that uses it, so the limit is what the machine has, or the
** process's control group. */
static double machine_bytes(void) {
  static double bytes;                                /* two threads would write the same number */
  if (bytes == 0) {
    double all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double now = group_limit("0::", "/sys/fs/cgroup", "memory.max");
    double old = group_limit(":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes");
    bytes = fmin(all, fmin(now, old));
  }
  return bytes;
}

/* The address space that the process may have (ulimit -v). */
static double address_space(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ? INFINITY : (double)limit.rlim_cur;
}

static const char *error(void) {
  static char text[80];
  if (isinf(address_space())) return "out of memory";
  snprintf(text, sizeof text, "out of memory; the address space is limited to %.0f MB (ulimit -v)", address_space() / 1e6);
  return text;
}

/* As much address space as there is memory, or a small share of a limited one, which several arenas need; pages come when
** touched. */
static void *reserve(size_t had, size_t *bytes) {
  double most = fmin(machine_bytes(), address_space() / 16);
  if (had && isinf(address_space())) return NULL;
  if (most < (double)*bytes) most = (double)*bytes;
  for (size_t size = (size_t)most; size >= *bytes; size /= 2) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    madvise(p, size, MADV_HUGEPAGE);
    *bytes = size;
    return p;
  }
  return NULL;
}

static void give_back(void *p, size_t bytes) { munmap(p, bytes); }

/* Whole vectors; large ones are pages that come when touched.  Where the block begins is kept in front. */
static void *zeros(size_t bytes) {
  bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  char *block = calloc(1, bytes + 2 * ALIGN);
  if (!block) return NULL;
  char *at = block + ALIGN + (ALIGN - (size_t)block % ALIGN) % ALIGN;
  memcpy(at - sizeof block, &block, sizeof block);
  return at;
}

static void release(void *at) {
  char *block = NULL;
  if (at) memcpy(&block, (char *)at - sizeof block, sizeof block);
  free(block);
}

static int copy(void *to, const void *from, size_t bytes) { return memmove(to, from, bytes), 0; }
static int zero(void *p, size_t bytes) { return memset(p, 0, bytes), 0; }

static int add(float *to, const float *from, long n) {
  for (long i = 0; i < n; i++) to[i] += from[i];
  return 0;
}

mn_device mn_cpu = {
  .name = "cpu", .call_bytes = sizeof(mn_call), .open = always, .free_bytes = machine_bytes, .reserve = reserve,
  .give_back = give_back, .zeros = zeros, .alloc = zeros, .free = release, .copy_in = copy, .copy_out = copy,
  .copy = copy, .zero = zero, .add = add, .wait = always, .error = error,
};
