/* device_cpu.c -- the CPU as a device: calls complete before they return, so there is nothing to wait for. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "device.h"

enum { ALIGN = 64 };

static int always(void) { return 0; }
static const char *error(void) { return "out of memory"; }

/* Some systems grant any amount of memory and kill the process that uses it, so the limit is what the machine has. */
static double machine_bytes(void) { return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE); }

/* As much address space as there is memory; pages come when touched. */
static void *reserve(size_t had, size_t *bytes) {
  for (size_t size = (size_t)machine_bytes(); !had && size >= *bytes && size >= (size_t)1 << 24; size /= 2) {
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
