/* op_case.h -- one use of an op, run by the CPU and by a device's kernel on the same numbers.
** The device is reached as a context reaches it: engine/base/device.h finds plugin, memory and kernel. */
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
extern "C" {
#include "base/device.h"
#include "graph/signature.h"
}

struct OpCase {
  mn_op_entry *entry = nullptr;
  mn_call call = {};
  std::vector<std::vector<unsigned char>> in, cpu, device;   /* bytes: inputs, outputs twice */
  uint32_t random = 12345;

  explicit OpCase(const char *op) {
    int n;
    mn_op_entry *all = mn_ops_all(&n);
    for (int i = 0; i < n; i++) if (!strcmp(all[i].name, op)) entry = &all[i];
    if (!entry) { fprintf(stderr, "no op %s\n", op); exit(1); }
    call.op = entry->op;
    call.name = entry->name;
    call.input_name = entry->input_name;
    call.n_in = entry->sig.n_in;
    call.n_out = entry->sig.n_out;
    for (int i = 0; i < entry->sig.n_options; i++) call.option[i] = entry->sig.option[i].value;
    in.resize((size_t)call.n_in);
  }

  /* Fill an input with numbers in lo..hi: floats, or whole numbers where the signature says so. */
  void input(const char *name, std::vector<int> shape, double lo, double hi) {
    int i = 0;
    while (i < call.n_in && strcmp(entry->sig.in[i].name, name)) i++;
    if (i == call.n_in) { fprintf(stderr, "%s has no input %s\n", entry->name, name); exit(1); }
    mn_arg &a = call.in[i];
    a.dtype = entry->sig.in[i].dtype;
    a.ndim = (int)shape.size();
    a.n = 1;
    for (int k = 0; k < a.ndim; k++) a.n *= a.shape[k] = shape[(size_t)k];
    in[(size_t)i].resize(bytes(a));
    a.u8 = in[(size_t)i].data();
    for (long k = 0; k < a.n; k++) {
      random = random * 1664525u + 1013904223u;
      const double x = lo + (hi - lo) * (random >> 8) / (1 << 24);
      if (a.dtype == MN_F32) a.data[k] = (float)x;
      else if (a.dtype == MN_I32) a.i32[k] = (int32_t)x;
      else a.u8[k] = (uint8_t)x;
    }
  }

  /* A word of an option (a|b|c), or a number. */
  void option(const char *name, const char *word) {
    mn_option_sig &o = find(name);
    const std::string words = std::string("|") + o.words + "|";
    const size_t at = words.find(std::string("|") + word + "|");
    if (at == std::string::npos) {
      fprintf(stderr, "%s: %s is not %s\n", entry->name, name, word);
      exit(1);
    }
    double index = 0;
    for (size_t k = 0; k < at; k++) index += words[k] == '|';
    call.option[&o - entry->sig.option] = index;
  }
  void option(const char *name, double value) { call.option[&find(name) - entry->sig.option] = value; }

  /* Shapes of the outputs, and what the CPU computes; false with mn_error(NULL). */
  bool run_cpu(mn_ctx *mn) {
    call.ctx = mn;
    if (mn_bind(mn, entry, &call)) return false;
    call.t0 = 0;
    call.t1 = call.dim['T' - 'A'];
    cpu.assign((size_t)call.n_out, {});
    for (int i = 0; i < call.n_out; i++) {
      cpu[(size_t)i].assign(bytes(call.out[i]), 0);
      call.out[i].u8 = cpu[(size_t)i].data();
    }
    call.op->forward(&call);
    return true;
  }

  /* The same on a device, in one go or in pieces of `step` rows of time; "" or what went wrong. */
  std::string run_device(mn_device *d, const mn_kernel *kernel, int step = 0) {
    mn_call there = call;
    std::string failed;
    for (int i = 0; i < call.n_in; i++) {
      if (!call.in[i].u8) continue;
      const size_t n = bytes(call.in[i]);
      there.in[i].u8 = (uint8_t *)d->alloc(n);
      if (!there.in[i].u8 || d->copy_in(there.in[i].u8, call.in[i].u8, n)) failed = d->error();
    }
    for (int i = 0; i < call.n_out; i++)
      if (!(there.out[i].u8 = (uint8_t *)d->alloc(bytes(call.out[i])))) failed = d->error();
    if (!step) step = call.t1;
    there.by_rows = step < call.t1;
    for (int t = 0; failed.empty() && t < call.t1; t += step) {
      there.t0 = t;
      there.t1 = t + step < call.t1 ? t + step : call.t1;
      kernel->forward(&there);
      if (d->wait()) failed = d->error();
    }
    device.assign((size_t)call.n_out, {});
    for (int i = 0; failed.empty() && i < call.n_out; i++) {
      std::vector<unsigned char> &bytes_here = device[(size_t)i];
      bytes_here.resize(bytes(call.out[i]));
      if (d->copy_out(bytes_here.data(), there.out[i].u8, bytes_here.size())) failed = d->error();
    }
    for (int i = 0; i < call.n_in; i++) if (call.in[i].u8) d->free(there.in[i].u8);
    for (int i = 0; i < call.n_out; i++) d->free(there.out[i].u8);
    return failed;
  }

  /* Largest error of an output, relative to the CPU's largest number; NaN counts as infinite. */
  double error(int i) const {
    const long n = call.out[i].n;
    double worst = 0, scale = 1e-30;
    for (long k = 0; k < n; k++) {
      const double want = at(cpu[(size_t)i], i, k), got = at(device[(size_t)i], i, k);
      const double difference = std::fabs(got - want);
      scale = std::fmax(scale, std::fabs(want));
      worst = difference <= 1e300 ? std::fmax(worst, difference) : INFINITY;
    }
    return worst / scale;
  }

  /* "" if every output is near the CPU's, else the first that is not. */
  std::string compare(double tolerance) const {
    for (int i = 0; i < call.n_out; i++) {
      if (!strcmp(entry->sig.out[i].name, "saved")) continue;      /* each side lays it out its own way */
      const double e = error(i);
      char text[160];
      snprintf(text, sizeof text, "%s is off by %.2g of its largest number, at most %.2g is allowed",
               entry->sig.out[i].name, e, tolerance);
      if (!(e <= tolerance)) return text;
    }
    return "";
  }

 private:
  static size_t bytes(const mn_arg &a) { return (size_t)a.n * (a.dtype == MN_U8 ? 1 : 4); }
  double at(const std::vector<unsigned char> &v, int i, long k) const {
    float x;
    int32_t n;
    if (call.out[i].dtype == MN_U8) return v[(size_t)k];
    memcpy(&x, &v[(size_t)k * 4], 4);
    memcpy(&n, &v[(size_t)k * 4], 4);
    return call.out[i].dtype == MN_F32 ? x : n;
  }
  mn_option_sig &find(const char *name) {
    for (int i = 0; i < entry->sig.n_options; i++)
      if (!strcmp(entry->sig.option[i].name, name)) return entry->sig.option[i];
    fprintf(stderr, "%s has no option %s\n", entry->name, name);
    exit(1);
  }
};
