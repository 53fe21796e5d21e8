/* emu_check.h -- for emu.cpp: device memory that frees itself, and what the emulator reported. */
#pragma once
#include <vector>
#include "result.h"

/* What the emulator has found wrong since the last call, and whether that is nothing. */
inline std::string errors() {
  cudaStreamSynchronize(MN_STREAM);
  std::string all;
  for (const std::string &e : emu::take_errors()) all += e + "; ";
  return all;
}
inline bool clean() { return errors().empty(); }

template <class T> struct Device {
  T *at = nullptr;
  size_t n;
  explicit Device(size_t n_) : n(n_) {
    if (cudaMalloc((void **)&at, n * sizeof(T)) != cudaSuccess) { perror("cudaMalloc"); exit(1); }
  }
  explicit Device(const std::vector<T> &v) : Device(v.size()) {
    cudaMemcpyAsync(at, v.data(), n * sizeof(T), cudaMemcpyHostToDevice, MN_STREAM);
  }
  ~Device() { cudaFree(at); }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  std::vector<T> read() const {
    std::vector<T> v(n);
    cudaMemcpyAsync(v.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost, MN_STREAM);
    return v;
  }
};
