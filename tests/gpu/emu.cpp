/* emu.cpp -- does the emulation run right kernels right, and catch wrong ones?
** A harness that misses mistakes is worse than none, so each class of mistake is planted here and
** must be reported, in every schedule.  Prints "ok NAME" or "FAIL NAME: why" (tests/gpu/test_gpu.lua). */
#include "lib/chunk.cuh"
#include "lib/row_teams.cuh"
#include "runtime/graphs.cu"
#include "emu_check.h"
#include "fatal.h"

enum { N = 96 };                 /* threads of most blocks here: three warps */
#define FULL 0xffffffffu

/* ---- right kernels ---- */

/* y[block] = sum of x[block][0..n-1]: shuffles, shared memory, barriers, a tail. */
CU_KERNEL sum_rows(const float *x, float *y, int n) {
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
CU_KERNEL warp_operations(int *y) {
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
CU_KERNEL reverse_and_count(const float4 *x, float4 *y, int *count) {
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

/* y[row] = the sum, z[row] = the largest of x[row][0..D-1], by teams of some width. */
CU_KERNEL team_rows(const float *x, double *y, float *z, long rows, int D, int width) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    double sum = 0;
    float top = -INFINITY;
    for (int i = team.lane; row < rows && i < D; i += width) sum += x[row * D + i], top = cu_max(top, x[row * D + i]);
    sum = team.sum(sum);
    top = team.max(top);
    if (row < rows && team.lane == width - 1) y[row] = sum, z[row] = top;
  }
}

CU_KERNEL divide_all(const long *n, long *y, cu_divisor by, long count) {
  CU_LOOP(i, count) {
    long rest;
    const long q = by.divide(n[i], &rest);
    y[i] = q * 10 + (rest == n[i] % by.by && q == n[i] / by.by);
  }
}

/* ---- wrong kernels: one mistake each ---- */

CU_KERNEL missing_barrier(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  a[threadIdx.x] = 1.0f;
  y[threadIdx.x] = a[(threadIdx.x + 40) % N];
}

CU_KERNEL missing_second_barrier(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  float s = 0;
  for (int i = 0; i < 2; i++) {
    a[threadIdx.x] = (float)i;
    __syncthreads();
    s += a[(threadIdx.x + 40) % N];
  }
  y[threadIdx.x] = s;
}

CU_KERNEL shuffle_as_fence(float *y) {      /* it orders no memory, not even in a warp */
  cu_smem<float> a = CU_SHARED(float, 0);
  a[threadIdx.x] = 1.0f;
  const float other = __shfl_xor_sync(FULL, 1.0f, 1);
  y[threadIdx.x] = other + a[threadIdx.x ^ 1];
}

CU_KERNEL syncwarp_across_warps(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  a[threadIdx.x] = 1.0f;
  __syncwarp();
  y[threadIdx.x] = a[(threadIdx.x + 32) % N];
}

CU_KERNEL atomic_and_plain(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  if (threadIdx.x == 0) a[0] = 0.0f;
  __syncthreads();
  atomicAdd(&a[0], 1.0f);
  y[threadIdx.x] = a[0];
}

CU_KERNEL two_barriers(float *y) {
  if (threadIdx.x < 64) __syncthreads();
  else __syncthreads();
  y[threadIdx.x] = 0;
}

CU_KERNEL exit_before_barrier(float *y) {
  if (threadIdx.x == 70) return;
  __syncthreads();
  y[threadIdx.x] = 0;
}

CU_KERNEL absent_lanes(float *y) {
  if (threadIdx.x % 32 < 16) y[threadIdx.x] = cu_warp_sum(1.0f);
  __syncthreads();
}

CU_KERNEL not_in_mask(float *y) { y[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 0); }

CU_KERNEL reads_absent_lane(float *y) {
  if (threadIdx.x % 32 < 16) y[threadIdx.x] = __shfl_down_sync(0xffffu, 1.0f, 8);
}

CU_KERNEL odd_width(float *y) { y[threadIdx.x] = __shfl_xor_sync(FULL, 1.0f, 1, 12); }

CU_KERNEL shared_overrun(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  a[threadIdx.x + 1] = 1.0f;
  y[threadIdx.x] = 0;
}

CU_KERNEL shared_unwritten(float *y) {
  cu_smem<float> a = CU_SHARED(float, 0);
  if (threadIdx.x) a[threadIdx.x] = 1.0f;
  __syncthreads();
  y[threadIdx.x] = a[N - 1 - threadIdx.x];
}

CU_KERNEL shared_misaligned(float *y) {
  cu_smem<float2> a = CU_SHARED(float2, 4);
  if (threadIdx.x == 0) a[0] = float2{ 1.0f, 2.0f };
  y[threadIdx.x] = 0;
}

CU_KERNEL writes_what_others_read(float *y) {     /* wrong: blocks run in any order */
  if (threadIdx.x == 0) y[blockIdx.x + 1] = y[blockIdx.x] + 1.0f;
}

CU_KERNEL global_overrun(float *y) { y[threadIdx.x + 4] = 0; }

/* ---- running them ---- */

static const char *const order_name[] = { "forward", "reverse", "shuffled" };

static void right_kernels(const char *order) {
  const int rows = 5, n = 133;
  std::vector<float> x(rows * n), y(rows), want(rows);
  for (int i = 0; i < rows * n; i++) x[i] = (float)(i % 17), want[i / n] += x[i];
  Device<float> dx(x), dy(rows);
  CU_LAUNCH(sum_rows, rows, N, N / 32 * sizeof(float), dx.at, dy.at, n);
  expect(std::string("sum by shuffles and barriers, ") + order, dy.read() == want && clean());

  const int threads = 64;
  Device<int> dz(6 * threads);
  CU_LAUNCH(warp_operations, 1, dim3(8, 8), 0, dz.at);
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
  CU_LAUNCH(reverse_and_count, 3, N, shared, dv.at, dw.at, count.at);
  std::vector<float4> w = dw.read();
  ok = clean() && count.read() == std::vector<int>(4, 3 * N / 4);
  for (int i = 0; i < N; i++) ok = ok && w[i].x == (float)(i - i % 32 + 31 - i % 32) && w[i].w == 3;
  expect(std::string("__syncwarp, float4 and atomics, ") + order, ok);
}

/* Sixty-four sums over a warp, two to a lane, read as float4 from shared memory; and bits by their places. */
CU_KERNEL sums_and_bits(float *y, int *bits) {
  const int lane = (int)threadIdx.x;
  float x[64];
  for (int i = 0; i < 64; i++) x[i] = (float)(i * 100 + lane);
  cu_warp_sums(x, lane);
  cu_smem<float> sums = CU_SHARED(float, 0);
  sums[2 * lane] = x[0], sums[2 * lane + 1] = x[1];
  __syncwarp();
  if (lane < 16) {
    const float4 four = cu_smem_quads(sums)[lane];
    y[4 * lane] = four.x, y[4 * lane + 1] = four.y, y[4 * lane + 2] = four.z, y[4 * lane + 3] = four.w;
  }
  bits[lane] = cu_first(0x8421u, lane % 16) * 1000 + cu_seeing(lane % 2 ? 0x50u : 0u, 9) * 10 + __clz(lane);
}

/* What the helpers of kernels give. */
static void helpers(const char *order) {
  const int rows = 37, D = 71;
  std::vector<float> x(rows * D), top(rows, -1.0f);
  std::vector<double> want(rows);
  for (int i = 0; i < rows * D; i++) {
    x[i] = (float)(i * 7 % 113);
    want[i / D] += x[i];
    top[i / D] = std::max(top[i / D], x[i]);
  }
  Device<float> sums(64);
  Device<int> bits(32);
  CU_LAUNCH(sums_and_bits, 1, 32, 64 * sizeof(float), sums.at, bits.at);
  bool right = clean();
  for (int i = 0; i < 64; i++) right = right && sums.read()[(size_t)i] == (float)(32 * i * 100 + 31 * 16);
  for (int i = 0; i < 32; i++) {
    const int t = i % 16, first = t >= 15 ? 15 : t >= 10 ? 10 : t >= 5 ? 5 : 0, zeros = i ? 31 - (int)std::log2(i) : 32;
    right = right && bits.read()[(size_t)i] == first * 1000 + (i % 2 ? 4 : 9) * 10 + zeros;
  }
  expect(std::string("many sums over a warp, places of bits, ") + order, right);
  Device<float> dx(x), dz(rows);
  for (int width = 1; width <= CU_THREADS; width *= 2) {
    Device<double> dy(rows);
    CU_LAUNCH(team_rows, 3, CU_THREADS, CU_TEAM_SHARED, dx.at, dy.at, dz.at, rows, D, width);
    expect("teams of " + std::to_string(width) + ", " + order, clean() && dy.read() == want && dz.read() == top);
  }
  std::vector<long> n = { 0, 1, 6, 7, 8, 63, 64, 1000003, 2147483646, 2147483647, 2147483648, 4294967297, 1l << 40 };
  bool ok = true;
  for (long by : { 1l, 2l, 3l, 7l, 64l, 641l, 1000003l, 2147483647l, 2147483648l, 4294967296l, 4294967301l }) {
    Device<long> dn(n), q(n.size());
    CU_LAUNCH(divide_all, 2, 32, 0, dn.at, q.at, cu_divisor(by), (long)n.size());
    const std::vector<long> got = q.read();
    for (size_t i = 0; i < n.size(); i++) ok = ok && got[i] == n[i] / by * 10 + 1;
  }
  expect(std::string("divisors, ") + order, ok && clean());
}

/* Launch a wrong kernel; its mistake must be among what is reported. */
template <auto kernel> static void planted(const char *name, const char *order, const char *report) {
  Device<float> y(std::vector<float>(2 * N));
  emu::machine().quiet = true;
  CU_LAUNCH(kernel, 2, N, N * sizeof(float), y.at);
  const std::string got = errors();
  emu::machine().quiet = false;
  expect(std::string("catches ") + name + ", " + order, got.find(report) != std::string::npos,
         std::string("expected \"") + report + "\", got: " + (got.empty() ? "nothing" : got));
}

static std::vector<float> chained(emu::Schedule order) {
  emu::machine().schedule = order;
  Device<float> y(std::vector<float>(9));
  CU_LAUNCH(writes_what_others_read, 8, 32, 0, y.at);
  return y.read();
}

int main() {
  for (emu::Schedule order : { emu::FORWARD, emu::REVERSE, emu::SHUFFLED }) {
    emu::machine().schedule = order;
    const char *o = order_name[order];
    right_kernels(o);
    helpers(o);
    planted<missing_barrier>("a missing barrier", o, "race: ");
    planted<missing_second_barrier>("a missing second barrier", o, "race: ");
    planted<shuffle_as_fence>("a shuffle used as a fence", o, "race: ");
    planted<syncwarp_across_warps>("__syncwarp across warps", o, "race: ");
    planted<atomic_and_plain>("an atomic beside a plain access", o, "race: ");
    planted<two_barriers>("divergent barriers", o, "different __syncthreads");
    planted<exit_before_barrier>("an exit before a barrier", o, "have exited");
    planted<absent_lanes>("a shuffle some lanes never reach", o, "deadlock");
    planted<not_in_mask>("a caller outside its mask", o, "not in its own mask");
    planted<reads_absent_lane>("a shuffle from an absent lane", o, "which is not there");
    planted<odd_width>("a width that is no power of two", o, "width 12");
    planted<shared_overrun>("shared memory past its end", o, "shared: 4 bytes at byte 384 of 384");
    planted<shared_unwritten>("an unwritten shared word", o, "no thread of this block has written");
    planted<shared_misaligned>("a misaligned shared access", o, "shared: 8 bytes at byte 4");
  }
  expect("catches blocks that depend on their order", chained(emu::FORWARD) != chained(emu::REVERSE));

  Device<float> y(N);
  std::vector<float> host(N);
  emu::machine().quiet = true;
  char why[512] = "";
  CU_LAUNCH(missing_barrier, 1, 512, 0, y.at);
  expect("refuses a block of 512 threads", cu_failure(why, sizeof why) && strstr(why, "512 x 1 x 1 threads, a block has up to 256"), why);
  CU_LAUNCH(missing_barrier, 1, N, 49 << 10, y.at);
  expect("refuses 49 KB of shared memory", cu_failure(why, sizeof why) && strstr(why, "bytes of shared memory, a block is given 49152"), why);
  CU_LAUNCH(missing_barrier, dim3(1, 70000, 1), N, 0, y.at);
  expect("refuses 70000 blocks along y", cu_failure(why, sizeof why) && strstr(why, "1 x 70000 x 1 blocks"), why);
  CU_LAUNCH(missing_barrier, 1, N, N * sizeof(float), host.data());
  expect("catches a host pointer in a kernel", errors().find("is a host pointer") != std::string::npos);
  emu::machine().quiet = false;
  const cudaError_t copied = cudaMemcpyAsync(y.at, host.data(), (N + 1) * sizeof(float),
                                             cudaMemcpyHostToDevice, MN_STREAM);
  expect("refuses a copy past the end", copied == cudaErrorInvalidValue);
  fatal("catches global memory past its end",
        [&] { CU_LAUNCH(global_overrun, 1, N, 0, y.at); cudaStreamSynchronize(MN_STREAM); },
        "global: byte 384 of an allocation of 384, by global_overrun thread 92");
  fatal("catches the host on device memory", [&] { y.at[3] = 1; },
        "global: byte 12 of an allocation of 384, by the host");
  return finish();
}
