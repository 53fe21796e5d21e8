/* device.c -- finds the plugin of a device at run time.  A missing plugin, driver or GPU is an error
** that says which of them it is, and an op without a kernel is an error that names it: nothing
** falls back to the CPU silently. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "base/device.h"
#include "signature.h"

int mn_check_device(mn_ctx *mn, int result) {
  return result ? mn_fail(mn, "device=%s: %s", mn->work.device->name, mn->work.device->error()) : 0;
}

static const struct { const char *name, *make; } known[] = {
  { "cuda", "make gpu" },
  { "emu",  "make build/libmneme_emu.so" },
};

/* libmneme_NAME.so in the folder of the library (or program) that holds this function. */
static int plugin_path(char *path, size_t n, const char *name) {
  Dl_info here;
  if (!dladdr((void *)(uintptr_t)&mn_device_open, &here) || !here.dli_fname) return -1;
  const char *slash = strrchr(here.dli_fname, '/');
  const int folder = slash ? (int)(slash - here.dli_fname) : 1;
  int used = snprintf(path, n, "%.*s/libmneme_%s.so", folder, slash ? here.dli_fname : ".", name);
  return used < 0 || (size_t)used >= n ? -1 : 0;
}

int mn_device_open(mn_ctx *mn, const char *name, mn_device **out) {
  *out = &mn_cpu;
  if (!name || !strcmp(name, "cpu")) return 0;
  const char *make = NULL;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(name, known[i].name)) make = known[i].make;
  if (!make) return mn_fail(mn, "device=%s is unknown, expected cpu or cuda", name);

  char path[4096];
  if (plugin_path(path, sizeof path, name))
    return mn_fail(mn, "device=%s: the folder of libmneme.so is unknown", name);
  if (access(path, F_OK))
    return mn_fail(mn, "device=%s: libmneme_%s.so not found next to libmneme.so; build it with `%s`",
                   name, name, make);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return mn_fail(mn, "device=%s: %s", name, dlerror());

  mn_device *d = dlsym(library, "mn_plugin");
  if (!d || d->call_bytes != sizeof(mn_call) || strcmp(d->name, name)) {
    dlclose(library);
    return mn_fail(mn, "device=%s: libmneme_%s.so is of another version; rebuild it with `%s`",
                   name, name, make);
  }
  d->library = library;
  if (d->open()) return mn_fail(mn, "device=%s: %s", name, d->error());
  *out = d;
  return 0;
}

const mn_kernel *mn_device_kernel(mn_ctx *mn, const mn_device *d, const mn_op_entry *op, bool backward) {
  if (!d->library || op->op->any_device) return &op->kernel;
  char symbol[128];
  snprintf(symbol, sizeof symbol, "mn_kernel_%s", op->name);
  const mn_kernel *k = dlsym(d->library, symbol);
  if (!k) return mn_fail(mn, "%s: has no kernel for device=%s yet", op->name, d->name), NULL;
  if (backward && !k->backward)
    return mn_fail(mn, "%s: has no backward kernel for device=%s yet", op->name, d->name), NULL;
  return k;
}

const void *mn_device_export(const mn_device *d, const char *kind, const char *name) {
  char symbol[128];
  snprintf(symbol, sizeof symbol, "mn_%s_kernel%s%s", kind, *name ? "_" : "", name);
  return d->library ? dlsym(d->library, symbol) : NULL;
}

int mn_device_outdated(mn_ctx *mn, const mn_device *d) {
  return mn_fail(mn, "device=%s: libmneme_%s.so is of another version; rebuild it", d->name, d->name);
}

int mn_wait(mn_ctx *mn) { return mn_check_device(mn, mn->work.device->wait()); }

const mn_kernel *mn_kernel_of(mn_ctx *mn, int op, bool backward) {
  const mn_kernel *k = mn->kernel[op];
  if (k && (k->backward || !backward)) return k;
  return mn->kernel[op] = mn_device_kernel(mn, mn->work.device, &mn_ops_all(NULL)[op], backward);
}
