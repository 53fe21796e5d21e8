/* plugin.cu -- memory and copies of a CUDA device, as engine/device.h asks for them.
** Compiled by nvcc into libmneme_cuda.so, and by g++ under emu.h into libmneme_emu.so.  Kernels need
** no list: each gpu/X.cu exports its own mn_kernel_X. */
#include <stdio.h>
#include "kernel.cuh"

static char last_error[256];

static int check(cudaError_t e, const char *what) {
  if (e == cudaSuccess) return 0;
  snprintf(last_error, sizeof last_error, "%s: %s", what, cudaGetErrorString(e));
  return -1;
}

static const char *error() { return last_error; }

static int open_device() {
  int n = 0;
  if (check(cudaGetDeviceCount(&n), "looking for a GPU")) return -1;
  if (n > 0) return 0;
  snprintf(last_error, sizeof last_error, "no GPU on this machine");
  return -1;
}

static void *alloc(size_t bytes) {
  void *p = NULL;
  return check(cudaMalloc(&p, bytes), "memory") ? NULL : p;
}

static void free_memory(void *p) { check(cudaFree(p), "freeing memory"); }

static int wait() {
  if (check(cudaGetLastError(), "launching a kernel")) return -1;
  return check(cudaStreamSynchronize(MN_STREAM), "running a kernel");
}

static int move(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, const char *what) {
  return check(cudaMemcpyAsync(to, from, bytes, kind, MN_STREAM), what);
}

static int copy_in(void *device, const void *host, size_t bytes) {
  return move(device, host, bytes, cudaMemcpyHostToDevice, "copying to the device");
}

static int copy_out(void *host, const void *device, size_t bytes) {
  if (move(host, device, bytes, cudaMemcpyDeviceToHost, "copying from the device")) return -1;
  return wait();
}

static int copy(void *to, const void *from, size_t bytes) {
  return move(to, from, bytes, cudaMemcpyDeviceToDevice, "copying on the device");
}

static int zero(void *p, size_t bytes) {
  return check(cudaMemsetAsync(p, 0, bytes, MN_STREAM), "zeroing");
}

#ifdef __CUDACC__
#define NAME "cuda"
#else
#define NAME "emu"
#endif

extern "C" {
extern mn_device mn_plugin;
mn_device mn_plugin = {
  NAME, sizeof(mn_call), NULL,
  open_device, alloc, free_memory, copy_in, copy_out, copy, zero, wait, error,
};
}

#ifndef __CUDACC__
/* For tests: the order in which blocks and threads run (emu::Schedule). */
extern "C" void mn_emu_order(int order);
extern "C" void mn_emu_order(int order) { emu::machine().schedule = (emu::Schedule)order; }
#endif
