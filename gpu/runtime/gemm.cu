/* gemm.cu -- matrix products by cuBLAS.
** cuBLAS is column-major, so a row-major product is its product with the operands swapped.
** Every host thread has a handle with its own workspace: cuBLAS then never allocates later, which would break
** a graph capture, and gives the same bits every time.
** "Pedantic" computes in full float32; the fast modes round the inputs to tf32 or bf16 and
** sum in float32. */
#include "gemm.cuh"
#ifdef __CUDACC__
#include <cublas_v2.h>
#else
#include "emulator/cublas.h"
#endif

#ifdef __CUDACC__
enum { WORKSPACE = 32 << 20 };                       /* bytes: what NVIDIA recommends for Hopper */
#else
enum { WORKSPACE = 4096 };                           /* the emulator opens and closes each page at every wait */
#endif

static bool failed(cublasStatus_t s, const char *what) {
  if (s == CUBLAS_STATUS_SUCCESS) return false;
  cu_fail(what, cublasGetStatusString(s));
  return true;
}

struct Handle {
  cublasHandle_t cublas = NULL;
  void *workspace = NULL;
  bool ready = false;            /* what failed half-way is tried again */
  bool open() {
    if (ready) return true;
    if (!cublas && failed(cublasCreate(&cublas), "opening cuBLAS")) return false;
    if (!workspace && cu_failed(cudaMalloc(&workspace, WORKSPACE), "memory for cuBLAS")) return false;
    ready = !failed(cublasSetStream(cublas, MN_STREAM), "cuBLAS")
            && !failed(cublasSetWorkspace(cublas, workspace, WORKSPACE), "cuBLAS");
    return ready;
  }
};
static thread_local Handle handle;                   /* as long as its thread */

void cu_gemm_batch(mn_call *c, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
                   float *C, int ldc, bool add, long stride_a, long stride_b, long stride_c, int batch) {
  static const cublasComputeType_t mode[] = {
    CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF
  };
  if (!M || !N || !batch || !handle.open()) return;
  const float one = 1, beta = add ? 1.0f : 0.0f;
  failed(cublasGemmStridedBatchedEx(handle.cublas, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N, N, M, K, &one,
                                    B, CUDA_R_32F, ldb, stride_b, A, CUDA_R_32F, lda, stride_a, &beta, C, CUDA_R_32F, ldc, stride_c,
                                    batch, mode[mn_precision(c->ctx)], CUBLAS_GEMM_DEFAULT), "a product of matrices");
}

void cu_gemm(mn_call *c, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
             float *C, int ldc, bool add) {
  cu_gemm_batch(c, ta, tb, M, N, K, A, lda, B, ldb, C, ldc, add, 0, 0, 0, 1);
}
