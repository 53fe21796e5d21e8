/* cublas.h -- the cuBLAS calls of gemm.cu, by the CPU's BLAS, in the order of other launches.
** Operands must lie in device memory as far as they are read, and leading dimensions must be possible.
** The fast modes round the operands as tensor cores do: tf32 keeps 10 bits after the point, bf16 7. */
#pragma once
#include "stream.h"
extern "C" {
#include "op.h"
}

typedef struct emu_cublas { void *workspace; } *cublasHandle_t;
enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_32F_PEDANTIC = 69, CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cudaDataType { CUDA_R_32F };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };

inline const char *cublasGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : s ? "CUBLAS_STATUS_NOT_SUPPORTED" : "";
}
inline cublasStatus_t cublasCreate(cublasHandle_t *h) { *h = new emu_cublas(); return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *p, size_t bytes) {
  h->workspace = p;
  return emu::on_device(p, bytes) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

namespace emu {

struct Matrix {                  /* op(X) is rows x cols, or X is, transposed; stored columns first */
  const float *at;
  int lda, rows, cols;
  long stride;
  bool transposed;
  int along() const { return transposed ? cols : rows; }
  int across() const { return transposed ? rows : cols; }
  bool possible(int batch) const {
    const long last = (long)(across() - 1) * lda + along();
    for (int i = 0; i < batch; i += batch > 1 ? batch - 1 : 1)
      if (!on_device(at + i * stride, (size_t)last * sizeof(float))) return false;
    return lda >= along();
  }
  /* Its numbers with `drop` bits of the fraction rounded away: ties to even, or away from zero. */
  std::vector<float> rounded(int i, int drop, bool even) const {
    std::vector<float> y((size_t)(across() - 1) * (size_t)lda + (size_t)along());
    for (size_t k = 0; k < y.size(); k++) {
      uint32_t bits;
      memcpy(&bits, at + i * stride + k, 4);
      const uint32_t half = 1u << (drop - 1), odd = bits >> drop & 1;
      if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + half - (even ? 1 - odd : 0)) & ~((1u << drop) - 1);
      memcpy(&y[k], &bits, 4);
    }
    return y;
  }
};

inline void product(const Matrix &a, const Matrix &b, const Matrix &c, bool add, cublasComputeType_t mode, int i) {
  const float *A = a.at + i * a.stride, *B = b.at + i * b.stride;
  std::vector<float> ra, rb;
  if (mode != CUBLAS_COMPUTE_32F_PEDANTIC) {
    const bool bf16 = mode == CUBLAS_COMPUTE_32F_FAST_16BF;
    ra = a.rounded(i, bf16 ? 16 : 13, bf16);
    rb = b.rounded(i, bf16 ? 16 : 13, bf16);
    A = ra.data();
    B = rb.data();
  }
  mn_gemm_one(b.transposed, a.transposed, b.cols, a.rows, a.cols, B, b.lda, A, a.lda, (float *)c.at + i * c.stride, c.lda, add);
}

/* What is wrong with `batch` products of this kind, if anything. */
inline cublasStatus_t refused(const emu_cublas *h, const Matrix &a, const Matrix &b, int batch, float scale, float keep) {
  if (!h->workspace) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (scale != 1 || (keep != 0 && keep != 1)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a.rows < 1 || b.cols < 1 || a.cols < 1 || batch < 1) return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace emu

inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
    const void *A, cudaDataType, int lda, long long stride_a, const void *B, cudaDataType, int ldb, long long stride_b,
    const void *beta, void *C, cudaDataType, int ldc, long long stride_c, int batch, cublasComputeType_t mode,
    cublasGemmAlgo_t) {
  using namespace emu;
  const float keep = *(const float *)beta;
  const Matrix a = { (const float *)A, lda, m, k, stride_a, ta == CUBLAS_OP_T };
  const Matrix b = { (const float *)B, ldb, k, n, stride_b, tb == CUBLAS_OP_T };
  const Matrix c = { (const float *)C, ldc, m, n, stride_c, false };
  const cublasStatus_t no = refused(h, a, b, batch, *(const float *)alpha, keep);
  if (no) return no;
  if (!a.possible(batch) || !b.possible(batch) || !c.possible(batch)) return CUBLAS_STATUS_INVALID_VALUE;
  enqueue("cublas", [=] {
    for (int i = 0; i < batch; i++) product(a, b, c, keep != 0, mode, i);
  });
  return CUBLAS_STATUS_SUCCESS;
}
