/* emu.cpp -- does the emulation run right kernels right, and catch wrong ones?
** A harness that misses mistakes is worse than none, so each class of mistake is planted here and
** must be reported, in every schedule.  Prints "ok NAME" or "FAIL NAME: why" (tests/test_gpu.lua). */
#include <sys/wait.h>
#include "kernel.cuh"
#include "emu_check.h"

enum { N = 96 };                 /* threads of most blocks here: three warps */
#define FULL 0xffffffffu

/* ---- right kernels ---- */

/* y[block] = sum of x[block][0..n-1]: shuffles, shared memory, barriers, a tail. */
static __global__ void sum_rows(const float *x, float *y, int n) {
  const int tid = (int)threadIdx.x, warps = (int)blockDim.x / 32;
  cu_smem<float> part = CU_SHARED(float, 0);
  float s = 0;
  for (int i = tid; i < n; i += (int)blockDim.x) s += x[(int)blockIdx.x * n + i];
  s = cu_warp_sum(s);
  if (tid % 32 == 0) part[tid / 32] = s;
  __syncthreads();
  if (tid == 0) {
    float all = 0;
    for (int w = 0; w < warps; w++) all += part[w];
    y[blockIdx.x] = all;
  }
}

/* What each lane gets from every warp operation. */
static __global__ void warp_operations(int *y) {
  const int tid = (int)(threadIdx.y * blockDim.x + threadIdx.x), n = (int)(blockDim.x * blockDim.y);
  y[tid] = __shfl_sync(FULL, tid, 5);
  y[n + tid] = __shfl_up_sync(FULL, tid, 3, 8);
  y[2 * n + tid] = __shfl_down_sync(FULL, tid, 3, 8);
  y[3 * n + tid] = __shfl_xor_sync(FULL, tid, 12, 8);
  y[4 * n + tid] = (int)__ballot_sync(FULL, tid % 3 == 0);
  const unsigned upper = 0xffff0000u;
  if (tid % 32 < 16) y[5 * n + tid] = __shfl_sync(0xffffu, tid * 10, 9);
  else y[5 * n + tid] = __any_sync(upper, tid % 32 == 20) + 2 * __all_sync(upper, tid % 32 == 20);
}

/* Reverse each warp through shared memory, ordered by __syncwarp alone; count with shared atomics. */
static __global__ void reverse_and_count(const float4 *x, float4 *y, int *count) {
  const int tid = (int)threadIdx.x, lane = tid % 32;
  cu_smem<float4> a = CU_SHARED(float4, 0);
  cu_smem<int> bins = CU_SHARED(int, N * sizeof(float4));
  a[tid] = x[tid];
  if (tid < 4) bins[tid] = 0;
  __syncwarp();
  y[tid] = a[tid - lane + 31 - lane];
  __syncthreads();
  atomicAdd(&bins[tid % 4], 1);
  __syncthreads();
  if (tid < 4) atomicAdd(&count[tid], (int)bins[tid]);
}

/* ---- wrong kernels: one mistake each ---- */

static __global__ void missing_barrier(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  a[threadIdx.x] = 1.0f;
  y[threadIdx.x] = a[(threadIdx.x + 40) % N];
}

static __global__ void missing_second_barrier(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  float s = 0;
  for (int i = 0; i < 2; i++) {
    a[threadIdx.x] = (float)i;
    __syncthreads();
    s += a[(threadIdx.x + 40) % N];
  }
  y[threadIdx.x] = s;
}

static __global__ void shuffle_as_fence(float *y) {      /* it orders no memory, not even in a warp */
  cu_smem<float> a = CU_SHARED(float, 0);
  a[threadIdx.x] = 1.0f;
  const float other = __shfl_xor_sync(FULL, 1.0f, 1);
  y[threadIdx.x] = other + a[threadIdx.x ^ 1];
}

static __global__ void syncwarp_across_warps(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  a[threadIdx.x] = 1.0f;
  __syncwarp();
  y[threadIdx.x] = a[(threadIdx.x + 32) % N];
}

static __global__ void atomic_and_plain(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  if (threadIdx.x == 0) a[0] = 0.0f;
  __syncthreads();
  atomicAdd(&a[0], 1.0f);
  y[threadIdx.x] = a[0];
}

static __global__ void two_barriers(float *y) {
  if (threadIdx.x < 64) __syncthreads();
  else __syncthreads();
  y[threadIdx.x] = 0;
}

static __global__ void exit_before_barrier(float *y) {
  if (threadIdx.x == 70) return;
  __syncthreads();
  y[threadIdx.x] = 0;
}

static __global__ void absent_lanes(float *y) {
  if (threadIdx.x % 32 < 16) y[threadIdx.x] = cu_warp_sum(1.0f);
  __syncthreads();
}

static __global__ void not_in_mask(float *y) { y[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 0); }

static __global__ void reads_absent_lane(float *y) {
  if (threadIdx.x % 32 < 16) y[threadIdx.x] = __shfl_down_sync(0xffffu, 1.0f, 8);
}

static __global__ void odd_width(float *y) { y[threadIdx.x] = __shfl_xor_sync(FULL, 1.0f, 1, 12); }

static __global__ void shared_overrun(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  a[threadIdx.x + 1] = 1.0f;
  y[threadIdx.x] = 0;
}

static __global__ void shared_unwritten(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  if (threadIdx.x) a[threadIdx.x] = 1.0f;
  __syncthreads();
  y[threadIdx.x] = a[N - 1 - threadIdx.x];
}

static __global__ void shared_misaligned(float *y) {
  cu_smem<float2> a = CU_SHARED(float2, 4);
  if (threadIdx.x == 0) a[0] = float2{ 1.0f, 2.0f };
  y[threadIdx.x] = 0;
}

static __global__ void writes_what_others_read(float *y) {     /* wrong: blocks run in any order */
  if (threadIdx.x == 0) y[blockIdx.x + 1] = y[blockIdx.x] + 1.0f;
}

static __global__ void global_overrun(float *y) { y[threadIdx.x + 4] = 0; }

/* ---- running them ---- */

static const char *const order_name[] = { "forward", "reverse", "shuffled" };

static void right_kernels(const char *order) {
  const int rows = 5, n = 133;
  std::vector<float> x(rows * n), y(rows), want(rows);
  for (int i = 0; i < rows * n; i++) x[i] = (float)(i % 17), want[i / n] += x[i];
  Device<float> dx(x), dy(rows);
  CU_LAUNCH(sum_rows, rows, N, N / 32 * sizeof(float), MN_STREAM, dx.at, dy.at, n);
  expect(std::string("sum by shuffles and barriers, ") + order, dy.read() == want && clean());

  const int threads = 64;
  Device<int> dz(6 * threads);
  CU_LAUNCH(warp_operations, 1, dim3(8, 8), 0, MN_STREAM, dz.at);
  std::vector<int> z = dz.read();
  bool ok = clean();
  for (int i = 0; i < threads; i++) {
    const int lane = i % 32, warp = i - lane, in8 = i % 8;
    unsigned votes = 0;
    for (int j = 0; j < 32; j++) votes |= (unsigned)((warp + j) % 3 == 0) << j;
    ok = ok && z[i] == warp + 5;
    ok = ok && z[threads + i] == (in8 >= 3 ? i - 3 : i);
    ok = ok && z[2 * threads + i] == (in8 + 3 < 8 ? i + 3 : i);
    ok = ok && z[3 * threads + i] == (lane & 8 ? i ^ 12 : i);      /* no segment after its own */
    ok = ok && z[4 * threads + i] == (int)votes;
    ok = ok && z[5 * threads + i] == (lane < 16 ? (warp + 9) * 10 : 1);
  }
  expect(std::string("warp operations, ") + order, ok);

  std::vector<float4> v(N);
  for (int i = 0; i < N; i++) v[i] = float4{ (float)i, 1, 2, 3 };
  Device<float4> dv(v), dw(N);
  Device<int> count(std::vector<int>(4));
  const size_t shared = N * sizeof(float4) + 4 * sizeof(int);
  CU_LAUNCH(reverse_and_count, 3, N, shared, MN_STREAM, dv.at, dw.at, count.at);
  std::vector<float4> w = dw.read();
  ok = clean() && count.read() == std::vector<int>(4, 3 * N / 4);
  for (int i = 0; i < N; i++) ok = ok && w[i].x == (float)(i - i % 32 + 31 - i % 32) && w[i].w == 3;
  expect(std::string("__syncwarp, float4 and atomics, ") + order, ok);
}

/* Launch a wrong kernel; its mistake must be among what is reported. */
static void planted(const char *name, const char *order, void (*kernel)(float *), const char *report) {
  Device<float> y(std::vector<float>(2 * N));
  emu::machine().quiet = true;
  CU_LAUNCH(kernel, 2, N, N * sizeof(float), MN_STREAM, y.at);
  emu::machine().quiet = false;
  const std::string got = errors();
  expect(std::string("catches ") + name + ", " + order, got.find(report) != std::string::npos,
         std::string("expected \"") + report + "\", got: " + (got.empty() ? "nothing" : got));
}

/* Some mistakes end the process: run them in a child and read its last words. */
template <class F> void fatal(const char *name, F f, const char *report) {
  int pipe_ends[2];
  if (pipe(pipe_ends)) return expect(name, false, "no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], 2);
    f();
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string got;
  char buffer[512];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0; )
    got.append(buffer, (size_t)n);
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  expect(name, status != 0 && got.find(report) != std::string::npos, "the child said: " + got);
}

static std::vector<float> chained(emu::Schedule order) {
  emu::machine().schedule = order;
  Device<float> y(std::vector<float>(9));
  CU_LAUNCH(writes_what_others_read, 8, 32, 0, MN_STREAM, y.at);
  return y.read();
}

int main() {
  for (emu::Schedule order : { emu::FORWARD, emu::REVERSE, emu::SHUFFLED }) {
    emu::machine().schedule = order;
    const char *o = order_name[order];
    right_kernels(o);
    planted("a missing barrier", o, missing_barrier, "race: ");
    planted("a missing second barrier", o, missing_second_barrier, "race: ");
    planted("a shuffle used as a fence", o, shuffle_as_fence, "race: ");
    planted("__syncwarp across warps", o, syncwarp_across_warps, "race: ");
    planted("an atomic beside a plain access", o, atomic_and_plain, "race: ");
    planted("divergent barriers", o, two_barriers, "different __syncthreads");
    planted("an exit before a barrier", o, exit_before_barrier, "have exited");
    planted("a shuffle some lanes never reach", o, absent_lanes, "deadlock");
    planted("a caller outside its mask", o, not_in_mask, "not in its own mask");
    planted("a shuffle from an absent lane", o, reads_absent_lane, "which is not there");
    planted("a width that is no power of two", o, odd_width, "width 12");
    planted("shared memory past its end", o, shared_overrun, "shared: 4 bytes at byte 384 of 384");
    planted("an unwritten shared word", o, shared_unwritten, "no thread of this block has written");
    planted("a misaligned shared access", o, shared_misaligned, "shared: 8 bytes at byte 4");
  }
  expect("catches blocks that depend on their order", chained(emu::FORWARD) != chained(emu::REVERSE));

  Device<float> y(N);
  std::vector<float> host(N);
  emu::machine().quiet = true;
  CU_LAUNCH(missing_barrier, 1, 2048, 0, MN_STREAM, y.at);
  expect("refuses a block of 2048 threads", errors().find("launch: ") != std::string::npos);
  CU_LAUNCH(missing_barrier, 1, N, 49 << 10, MN_STREAM, y.at);
  expect("refuses 49 KB of shared memory", errors().find("launch: ") != std::string::npos);
  CU_LAUNCH(missing_barrier, 1, N, N * sizeof(float), MN_STREAM, host.data());
  expect("catches a host pointer in a kernel", errors().find("is a host pointer") != std::string::npos);
  emu::machine().quiet = false;
  const cudaError_t copied = cudaMemcpyAsync(y.at, host.data(), (N + 1) * sizeof(float),
                                             cudaMemcpyHostToDevice, MN_STREAM);
  expect("refuses a copy past the end", copied == cudaErrorInvalidValue);
  fatal("catches global memory past its end",
        [&] { CU_LAUNCH(global_overrun, 1, N, 0, MN_STREAM, y.at); },
        "global: byte 384 of an allocation of 384, by global_overrun thread 92");
  fatal("catches the host on device memory", [&] { y.at[3] = 1; },
        "global: byte 12 of an allocation of 384, by the host");
  return finish();
}
