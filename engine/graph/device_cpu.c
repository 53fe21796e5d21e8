/* device_cpu.c -- the CPU as a device: calls complete before they return, so there is nothing to wait for. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/control_group.h"
#include "base/device.h"

enum { ALIGN = 64 };

static int always(void) { return 0; }

/* Some systems grant any amount of memory and kill the process that uses it, so the limit is what the machine has, or the
** process's control group. */
static double machine_bytes(void) {
  static double bytes;                                /* two threads would write the same number */
  if (bytes == 0) {
    double all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    bytes = fmin(all, mn_group_memory());
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

static _Atomic size_t reserved;                       /* by all arenas of this process */

/* As much address space as there is memory, or a small share of a limited one, which several arenas need, and all of them together at most
** half of it; pages come when touched.  What is asked for may be more than that, but an eighth is left to Lua and the libraries, which do
** not take a refusal as well. */
static void *reserve(size_t had, size_t *bytes) {
  const double limit = address_space(), taken = (double)reserved;
  double most = fmin(machine_bytes(), limit / 256);
  if (had && isinf(limit)) return NULL;
  if (taken + (double)*bytes > limit * 7 / 8) return NULL;
  most = fmin(most, limit / 2 - taken);
  if (most < (double)*bytes) most = (double)*bytes;
  for (size_t size = (size_t)most; size >= *bytes; size /= 2) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    madvise(p, size, MADV_HUGEPAGE);
    reserved += size;
    *bytes = size;
    return p;
  }
  return NULL;
}

static void give_back(void *p, size_t bytes) {
  munmap(p, bytes);
  reserved -= bytes;
}

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
