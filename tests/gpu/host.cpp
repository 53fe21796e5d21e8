/* host.cpp -- the host's side of the emulation: when work is done, what the host may touch, graphs, and
** products of matrices.  Mistakes are planted here, too.  Prints "ok NAME" or "FAIL NAME: why". */
#include "runtime/gemm.cu"
#include "runtime/graphs.cu"
#include "runtime/strided_copy.cuh"
#include "runtime/nccl.cuh"
#include "emu_check.h"
#include "fatal.h"

enum { N = 100 };

/* What has failed on the host's side. */
static std::string said() {
  char why[512] = "";
  cu_failure(why, sizeof why);
  return why;
}

CU_KERNEL add_to(float *y, const float *x, float by) {
  y[threadIdx.x] += x ? x[threadIdx.x] : by;
}

static void add(float *y, float by) { CU_LAUNCH(add_to, 1, N, 0, y, (const float *)nullptr, by); }

static float *managed(size_t n) {
  void *p = nullptr;
  if (cudaMallocManaged(&p, n * sizeof(float)) != cudaSuccess) exit(1);
  return (float *)p;
}

/* ---- order ---- */

static void waiting() {
  float *y = managed(N);
  expect("new managed memory is NaN", y[0] != y[0] && y[N - 1] != y[N - 1]);
  for (int i = 0; i < N; i++) y[i] = 1;
  float by = 2;
  add(y, by);
  by = 3;
  cudaStreamSynchronize(MN_STREAM);
  expect("arguments are those of the launch, and waiting opens managed memory", y[0] == 3 && clean());

  std::vector<float> x(N, 5);
  cudaMemcpyAsync(y, x.data(), N * sizeof(float), cudaMemcpyHostToDevice, MN_STREAM);
  x[0] = 7;
  add(y, 1);
  cudaStreamSynchronize(MN_STREAM);
  expect("what is copied in may change at once; copies and launches keep their order", y[0] == 6 && y[1] == 6);

  fatal("catches a host that does not wait", [&] { add(y, 1); x[0] = y[0]; },
        "by the host, which has not waited for what was launched");
  fatal("catches a host that writes while a graph is captured", [&] {
    cudaStreamBeginCapture(MN_STREAM, cudaStreamCaptureModeThreadLocal);
    y[0] = 1;
  }, "which has not waited");

  float *gone = managed(N);
  cudaFree(gone);
  emu::machine().quiet = true;
  add(gone, 1);
  expect("catches a pointer to freed memory", errors().find("has been freed") != std::string::npos);
  emu::machine().quiet = false;
  cudaFree(y);
}

/* ---- graphs ---- */

static cudaGraphExec_t captured(cudaError_t *result) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  *result = cudaStreamEndCapture(MN_STREAM, &graph);
  if (graph) cudaGraphInstantiate(&exec, graph, 0), cudaGraphDestroy(graph);
  return exec;
}

static void graphs() {
  float *y = managed(N), *x = managed(N);
  cudaError_t result;
  for (int i = 0; i < N; i++) y[i] = 0, x[i] = 1;
  cudaStreamBeginCapture(MN_STREAM, cudaStreamCaptureModeThreadLocal);
  CU_LAUNCH(add_to, 1, N, 0, y, x, 0.0f);
  add(y, 10);
  cudaGraphExec_t graph = captured(&result);
  expect("what is captured is not done", result == cudaSuccess && y[0] == 0);
  cudaGraphLaunch(graph, MN_STREAM);
  cudaGraphLaunch(graph, MN_STREAM);
  cudaStreamSynchronize(MN_STREAM);
  expect("a graph is done at each of its launches", y[0] == 22 && clean());
  x[0] = 100;
  cudaGraphLaunch(graph, MN_STREAM);
  cudaStreamSynchronize(MN_STREAM);
  expect("a graph sees other numbers in the same buffers", y[0] == 132 && y[1] == 33);

  emu::machine().quiet = true;
  const struct { const char *name; std::function<void()> mistake; const char *report; } planted[] = {
    { "waiting", [] { cudaStreamSynchronize(MN_STREAM); }, "the host waits" },
    { "allocating", [] { void *p; cudaMalloc(&p, 4); }, "memory is allocated" },
    { "freeing", [&] { cudaFree(x); }, "memory is freed" },
    { "copying to the host", [&] { float a; cudaMemcpyAsync(&a, y, 4, cudaMemcpyDeviceToHost, MN_STREAM); }, "the host waits" },
  };
  for (const auto &p : planted) {
    cudaStreamBeginCapture(MN_STREAM, cudaStreamCaptureModeThreadLocal);
    p.mistake();
    cudaGraphExec_t none = captured(&result);
    if (none) cudaGraphExecDestroy(none);
    expect(std::string("catches ") + p.name + " inside a capture",
           result != cudaSuccess && errors().find(std::string("capture: ") + p.report) != std::string::npos);
  }
  cudaFree(x);
  cudaGraphLaunch(graph, MN_STREAM);
  expect("catches a graph whose memory has been freed", errors().find("has been freed") != std::string::npos);
  emu::machine().quiet = false;
  cudaGraphExecDestroy(graph);
  cudaFree(y);
}

/* ---- products of matrices ---- */

static std::vector<float> numbers(size_t n, int seed) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; i++) v[i] = (float)((i * 7919 + (size_t)seed * 104729) % 2003) / 1001.5f - 1;
  return v;
}

static double off(const std::vector<float> &got, const std::vector<float> &want) {
  double worst = 0, scale = 1e-30;
  for (size_t i = 0; i < want.size(); i++) {
    const double d = std::fabs((double)got[i] - want[i]);
    worst = d <= worst ? worst : d < 1e30 ? d : INFINITY;
    scale = std::fmax(scale, std::fabs(want[i]));
  }
  return worst / scale;
}

/* Operands are parts of wider ones; two products, of which the second uses the same A. */
static void product(mn_call *c, bool ta, bool tb, bool sum) {
  const int M = 5, N2 = 7, K = 11, wide = 3, batch = 2;
  const int lda = (ta ? M : K) + wide, ldb = (tb ? K : N2) + wide, ldc = N2 + wide;
  const long each_b = (long)(tb ? N2 : K) * ldb, each_c = (long)M * ldc;
  std::vector<float> a = numbers((size_t)((ta ? K : M) * lda), 1), b = numbers((size_t)(batch * each_b), 2);
  std::vector<float> out = numbers((size_t)(batch * each_c), 3), want = out;
  for (int i = 0; i < batch; i++)
    mn_gemm_one(ta, tb, M, N2, K, a.data(), lda, b.data() + i * each_b, ldb, want.data() + i * each_c, ldc, sum);
  Device<float> da(a), db(b), dc(out);
  cu_gemm_batch(c, ta, tb, M, N2, K, da.at, lda, db.at, ldb, dc.at, ldc, sum, 0, each_b, each_c, batch);
  const std::string name = std::string("products: A") + (ta ? "' " : " ") + (tb ? "B'" : "B") + (sum ? ", added" : "");
  const double e = off(dc.read(), want);
  char why[512] = "";
  expect(name, e < 1e-6 && clean() && !cu_failure(why, sizeof why), why + std::string(" off by ") + std::to_string(e));
}

/* Of operands with few bits there is nothing to round; of others, what is lost is known. */
static void precision(const char *name, cublasComputeType_t mode, double least, double most) {
  const int n = 33;
  const float one = 1, zero = 0;
  for (bool whole : { true, false }) {
    std::vector<float> a = numbers(n * n, 4), b = numbers(n * n, 5), want(n * n);
    for (float &x : a) x = whole ? std::round(x * 16) : x;
    for (float &x : b) x = whole ? std::round(x * 16) : x;
    mn_gemm_one(false, false, n, n, n, b.data(), n, a.data(), n, want.data(), n, false);
    Device<float> da(a), db(b), dc(n * n);
    const cublasStatus_t s = cublasGemmStridedBatchedEx(
        handle.cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, da.at, CUDA_R_32F, n, 0, db.at, CUDA_R_32F, n, 0,
        &zero, dc.at, CUDA_R_32F, n, 0, 1, mode, CUBLAS_GEMM_DEFAULT);
    const double e = off(dc.read(), want);
    expect(std::string(name) + (whole ? " keeps small whole numbers" : " loses what its bits say"),
           s == CUBLAS_STATUS_SUCCESS && (whole ? e == 0 : e >= least && e <= most), std::to_string(e));
  }
}

/* ---- ranks ---- */

/* Of one rank, which talks to itself: n numbers are sent, `wanted` waited for. */
static ncclResult_t to_itself(ncclComm_t comm, const float *from, float *to, size_t n, size_t wanted) {
  ncclGroupStart();
  const ncclResult_t sent = ncclSend(from, n, ncclFloat, 0, comm, MN_STREAM);
  const ncclResult_t received = ncclRecv(to, wanted, ncclFloat, 0, comm, MN_STREAM);
  ncclGroupEnd();
  return sent ? sent : received;
}

static void ranks() {
  const std::vector<float> told = { 1, 2, 3, 4 };
  Device<float> x(told), y(4);
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  emu::machine().quiet = true;
  cudaStreamBeginCapture(MN_STREAM, cudaStreamCaptureModeThreadLocal);
  ncclGetUniqueId(&id);
  const bool refused = ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess;
  cudaGraph_t graph;
  cudaStreamEndCapture(MN_STREAM, &graph);
  cudaGraphDestroy(graph);
  expect("catches ranks that meet while a graph is captured", refused && errors().find("ranks meet while") != std::string::npos);
  expect("a rank joins itself", ncclCommInitRank(&comm, 1, id, 0) == ncclSuccess && clean());
  expect("a message arrives", !to_itself(comm, x.at, y.at, 4, 4) && y.read() == told && clean());
  to_itself(comm, x.at, y.at, 4, 3);
  expect("catches a message of another length", errors().find("sends 16 bytes to rank 0, which waits for 12") != std::string::npos);
  expect("catches a message past the end of memory", to_itself(comm, x.at, y.at, 5, 5) == ncclInvalidArgument
         && errors().find("not the device's") != std::string::npos);
  expect("catches host memory", to_itself(comm, told.data(), y.at, 4, 4) == ncclInvalidArgument
         && errors().find("not the device's") != std::string::npos);
  expect("catches a message outside of a group", ncclSend(x.at, 4, ncclFloat, 0, comm, MN_STREAM) == ncclInvalidUsage
         && errors().find("waits for ever") != std::string::npos);
  expect("what is gathered may be there already", !ncclAllGather(x.at, x.at, 4, ncclFloat, comm, MN_STREAM) && clean());
  expect("catches a part that is gathered into another's place", ncclAllGather(x.at, x.at + 1, 3, ncclFloat, comm, MN_STREAM)
         == ncclInvalidArgument && errors().find("overlaps") != std::string::npos);
  emu::machine().quiet = false;
}

int main() {
  waiting();
  graphs();
  ranks();
  mn_ctx *mn = mn_ctx_new("cpu", 1);
  mn_call c = {};
  c.ctx = mn;
  for (bool ta : { false, true }) for (bool tb : { false, true }) for (bool sum : { false, true }) product(&c, ta, tb, sum);
  precision("fp32", CUBLAS_COMPUTE_32F_PEDANTIC, 0, 1e-6);
  precision("tf32", CUBLAS_COMPUTE_32F_FAST_TF32, 1e-6, 1e-3);
  precision("bf16", CUBLAS_COMPUTE_32F_FAST_16BF, 1e-5, 1e-2);
  Device<float> x(24), y(24), z(16);
  cu_gemm(&c, false, false, 4, 4, 7, x.at, 7, y.at, 4, z.at, 4, false);
  const std::string why = said();
  expect("a product of operands that are too short is refused", why == "a product of matrices: CUBLAS_STATUS_INVALID_VALUE", why);
  mn_ctx_free(mn);
  return finish();
}
