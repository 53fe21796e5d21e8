/* gemm.cu -- products of matrices, by cuBLAS.
** cuBLAS counts columns first, so a row-major product is its product with the operands swapped.
** Every thread of the host has a handle with a workspace of its own: cuBLAS then allocates nothing later, which a
** captured graph could not bear, and gives the same bits every time.  Alike products of several seeds are one batch.
** "Pedantic" keeps all of float32's arithmetic; the fast modes round what goes in to tf32 or bf16 and
** add up in float32. */
#include "gemm.cuh"
#ifdef __CUDACC__
#include <cublas_v2.h>
#else
#include "emulator/cublas.h"
#endif

/* Bytes: what NVIDIA recommends for Hopper, and behind it pointers of a batch that is in no graph. */
enum { WORKSPACE = 32 << 20, POINTERS = 1 << 16 };
/* Lists of pointers begin at multiples of so many: cuBLAS refuses some that do not. */
enum { LIST = 4 };

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
    if (!workspace && cu_failed(cudaMalloc(&workspace, WORKSPACE + POINTERS), "memory for cuBLAS")) return false;
    ready = !failed(cublasSetStream(cublas, MN_STREAM), "cuBLAS")
            && !failed(cublasSetWorkspace(cublas, workspace, WORKSPACE), "cuBLAS");
    return ready;
  }
  /* Where pointers lie on the device, from now until the next are asked for; NULL: there are too many of them. */
  const void *const *place(const std::vector<const void *> &list) {
    const void **to = (const void **)(void *)((char *)workspace + WORKSPACE);
    const size_t bytes = list.size() * sizeof list[0];
    if (bytes > POINTERS || cu_failed(cudaMemcpyAsync(to, list.data(), bytes, cudaMemcpyHostToDevice, MN_STREAM), "a product of matrices"))
      return NULL;
    return to;
  }
};
static thread_local Handle handle;                   /* as long as its thread */

namespace {

/* Of a batch, each is `stride` further on than the one before. */
struct Operand {
  const float *at;
  int ld;
  long stride;
};

struct Product : cu_piece {
  cublasOperation_t ta, tb;
  int M, N, K, batch;
  float beta;
  Operand of[3];                 /* B, A, C: as cuBLAS takes them */
  cublasComputeType_t mode;

  bool like(const cu_piece &w) const override {
    const auto *o = dynamic_cast<const Product *>(&w);
    return o && o->ta == ta && o->tb == tb && o->M == M && o->N == N && o->K == K && o->batch == batch && o->beta == beta
           && o->of[0].ld == of[0].ld && o->of[1].ld == of[1].ld && o->of[2].ld == of[2].ld && o->mode == mode;
  }
  /* Tensor cores read whole 16 bytes, and of a batch by pointers cuBLAS does not look whether they may. */
  bool by_pointers(cu_piece *const *all, int n) const {
    uintptr_t odd = 0;
    for (int k = 0; k < n && mode != CUBLAS_COMPUTE_32F_PEDANTIC; k++)
      for (const Operand &x : static_cast<Product *>(all[k])->of)
        odd |= (uintptr_t)x.at | ((uintptr_t)x.ld | (uintptr_t)(batch > 1 ? x.stride : 0)) * sizeof(float);
    return n > 1 && odd % 16 == 0;
  }
  void pointers(cu_piece *const *all, int n, std::vector<const void *> *to) const override {
    if (!by_pointers(all, n)) return;
    for (int which = 0; which < 3; which++) {
      for (int k = 0; k < n; k++) {
        const Operand &x = static_cast<Product *>(all[k])->of[which];
        for (int i = 0; i < batch; i++) to->push_back(x.at + i * x.stride);
      }
      while (to->size() % LIST) to->push_back(NULL);
    }
  }
  void run(cu_piece *const *all, int n, const void *const *table) override {
    const float one = 1;
    const int products = n * batch, list = (products + LIST - 1) / LIST * LIST;
    if (!handle.open()) return;
    std::vector<const void *> now;
    if (!table) pointers(all, n, &now);
    if (!now.empty()) table = handle.place(now);
    if (table && by_pointers(all, n)) {
      const void *const *a = table + list;
      void *const *c = (void *const *)(const void *)(table + 2 * list);
      failed(cublasGemmBatchedEx(handle.cublas, tb, ta, N, M, K, &one, table, CUDA_R_32F, of[0].ld, a, CUDA_R_32F, of[1].ld,
                                 &beta, c, CUDA_R_32F, of[2].ld, products, mode, CUBLAS_GEMM_DEFAULT), "products of matrices");
      return;
    }
    for (int k = 0; k < n; k++) {
      const Operand *x = static_cast<Product *>(all[k])->of;
      failed(cublasGemmStridedBatchedEx(handle.cublas, tb, ta, N, M, K, &one, x[0].at, CUDA_R_32F, x[0].ld, x[0].stride, x[1].at,
                                        CUDA_R_32F, x[1].ld, x[1].stride, &beta, (float *)x[2].at, CUDA_R_32F, x[2].ld,
                                        x[2].stride, batch, mode, CUBLAS_GEMM_DEFAULT), "a product of matrices");
    }
  }
};

}  // namespace

void cu_gemm_batch(mn_call *c, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
                   float *C, int ldc, bool add, long stride_a, long stride_b, long stride_c, int batch) {
  static const cublasComputeType_t mode[] = {
    CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF
  };
  if (!M || !N || !batch) return;
  Product p;
  p.ta = ta ? CUBLAS_OP_T : CUBLAS_OP_N, p.tb = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
  p.M = M, p.N = N, p.K = K, p.batch = batch;
  p.beta = add ? 1.0f : 0.0f;
  p.of[0] = { B, ldb, stride_b }, p.of[1] = { A, lda, stride_a }, p.of[2] = { C, ldc, stride_c };
  p.mode = mode[mn_precision(c->ctx)];
  cu_do(p);
}

void cu_gemm(mn_call *c, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
             float *C, int ldc, bool add) {
  cu_gemm_batch(c, ta, tb, M, N, K, A, lda, B, ldb, C, ldc, add, 0, 0, 0, 1);
}
