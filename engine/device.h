/* device.h -- the machine that a context's numbers live on, when it is not the CPU.
** A device is a plugin, libmneme_NAME.so beside libmneme.so, found when a script asks for it, so
** that the engine itself needs no CUDA.  The plugin exports one mn_device called mn_plugin, and for
** each op X that it can do one mn_kernel called mn_kernel_X (gpu/X.cu, for engine/ops/X.c).
** "emu" is the plugin "cuda" compiled for the host under gpu/emu.h: for tests, where no GPU is. */
#ifndef MN_DEVICE_H
#define MN_DEVICE_H
#include "op.h"

typedef struct mn_kernel {       /* same contract as mn_op's, with device pointers in the call */
  void (*forward)(mn_call *c);
  void (*backward)(mn_call *c);  /* NULL: not written yet */
} mn_kernel;

typedef struct mn_device {
  const char *name;
  size_t call_bytes;             /* sizeof(mn_call) it was built with: another one is refused */
  void  *library;                /* set by mn_device_open */
  int   (*open)(void);           /* is there such a machine? */
  void *(*alloc)(size_t bytes);  /* numbers unset; NULL: no memory left */
  void  (*free)(void *p);
  int   (*copy_in)(void *device, const void *host, size_t bytes);    /* in the order of launches */
  int   (*copy_out)(void *host, const void *device, size_t bytes);   /* waits for it */
  int   (*copy)(void *to, const void *from, size_t bytes);           /* both on the device */
  int   (*zero)(void *p, size_t bytes);
  int   (*wait)(void);           /* until everything launched has run; -1: some of it failed */
  const char *(*error)(void);    /* why the last of these failed */
} mn_device;

/* Find and open a device: "cpu" (*out = NULL: the engine itself), "cuda" or "emu".  Plugins stay
** loaded and are shared by all contexts.  0, or -1 with the context's error (mn may be NULL). */
int mn_device_open(mn_ctx *mn, const char *name, mn_device **out);

/* The kernel of an op, borrowed; NULL with the context's error where the device has none, or none
** that goes backward when that is asked for.  It looks a name up: ask once and keep the answer. */
const mn_kernel *mn_device_kernel(mn_ctx *mn, const mn_device *d, const char *op, bool backward);

#endif
