/* device.h -- where a context's tensors are stored and computed: the CPU, or a GPU through a plugin.
** The engine accesses memory through a device only, and runs each op through the device's kernel, so
** no other code depends on which device it is.  The CPU is a device too (device_cpu.c); its kernels are the ops.
** A plugin is libmneme_NAME.so next to libmneme.so, loaded when a script asks for the device, so that the
** engine itself needs no CUDA.  It exports one mn_device called mn_plugin, and for each op X that it
** supports one mn_kernel called mn_kernel_X (in gpu/ops/X.cu).
** "emu" is the plugin "cuda" compiled for the host with gpu/emulator/emu.h, for tests without a GPU. */
#ifndef MN_DEVICE_H
#define MN_DEVICE_H
#include "op.h"

typedef struct mn_kernel {       /* same contract as mn_op's, with the device's pointers in the call */
  void (*forward)(mn_call *c);
  void (*backward)(mn_call *c);  /* NULL: there is none */
  int  (*fuse)(mn_call *const *calls, int n, bool back);
  double (*batch_parallel)(const mn_call *c);
} mn_kernel;

/* Work is done in the order in which it is asked for, some time before `wait` returns.  Memory of
** `reserve` and `zeros` is the host's, too, between a `wait` and the next work. */
typedef struct mn_device {
  const char *name;
  size_t call_bytes;             /* sizeof(mn_call) it was built with: another one is refused */
  void  *library;                /* set by mn_device_open; NULL: the CPU */
  int   (*open)(void);           /* is there such a machine? */
  double (*free_bytes)(void);    /* memory that numbers could still have */
  void *(*reserve)(size_t had, size_t *bytes);         /* had: bytes so far; reserves at least *bytes, and sets *bytes to the size; or NULL */
  void  (*give_back)(void *p, size_t bytes);           /* what was reserved */
  void *(*zeros)(size_t bytes);  /* NULL: out of memory */
  void *(*alloc)(size_t bytes);  /* numbers unset, not for the host; NULL: out of memory */
  void  (*free)(void *p);        /* of zeros or alloc */
  int   (*copy_in)(void *device, const void *host, size_t bytes);    /* the host's may change at once */
  int   (*copy_out)(void *host, const void *device, size_t bytes);   /* waits */
  int   (*copy)(void *to, const void *from, size_t bytes);           /* both the device's */
  int   (*zero)(void *p, size_t bytes);
  int   (*add)(float *to, const float *from, long n);  /* to += from */
  int   (*wait)(void);           /* until all work is done; -1: some of it failed */
  void  (*capture)(void);        /* work that follows is captured, not run; NULL: the device keeps no graphs */
  void *(*captured)(void);       /* that is all: a graph; NULL: it failed */
  void  (*launch)(void *graph);  /* do all of it */
  void  (*forget)(void *graph);
  const char *(*error)(void);    /* why the last of these failed */
} mn_device;

extern mn_device mn_cpu;

/* Find and open a device: "cpu", "cuda" or "emu".  Plugins stay loaded and are shared by all
** contexts.  0, or -1 with the context's error (mn may be NULL). */
int mn_device_open(mn_ctx *mn, const char *name, mn_device **out);

/* The kernel of an op, borrowed; NULL with the context's error where the device has none, or none
** that goes backward when that is asked for.  It looks a name up: call it once and keep the result. */
struct mn_op_entry;
const mn_kernel *mn_device_kernel(mn_ctx *mn, const mn_device *d, const struct mn_op_entry *op, bool backward);

/* What a plugin exports as mn_KIND_kernel_NAME (mn_KIND_kernel where name is ""); NULL: nothing, or the CPU. */
const void *mn_device_export(const mn_device *d, const char *kind, const char *name);

/* -1 with the context's error: the plugin was built with other structs than this library. */
int mn_device_outdated(mn_ctx *mn, const mn_device *d);

#endif
