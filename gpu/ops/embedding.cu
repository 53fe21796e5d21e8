/* embedding.cu -- looks up rows of a table, or sums them; and their gradient, in a fixed order without atomics.
** Backward sorts the indices with their positions by a stable radix sort of 8 bits per pass,
** so that rows of dy with equal indices follow each other.  Pieces of the sorted list are summed in
** parallel; a run of equal indices that crosses the edge of a piece leaves its part there, and
** the owner of the piece in which the run began adds the parts up. */
#include "runtime/strided_copy.cuh"

/* ---- forward ---- */

template <class V>
CU_KERNEL look_up(const V *w, const int32_t *index, V *y, long n, cu_divisor D, int rows, V absent) {
  CU_LOOP(i, n) {
    long d;
    const int at = index[D.divide(i, &d)];
    y[i] = at >= 0 && at < rows ? w[at * D.by + d] : absent;
  }
}

static void forward(mn_call *c) {
  const float *w = c->in[0].data;
  float *y = c->out[0].data;
  const long D = DIM(c, 'D'), n = c->out[0].n;
  if (D % 4 == 0 && cu_quads(4, w, y))
    CU_LAUNCH(look_up<float4>, cu_blocks(n, 4), CU_THREADS, 0, (const float4 *)w, c->in[1].i32, (float4 *)y,
              n / 4, cu_divisor(D / 4), DIM(c, 'V'), float4{ NAN, NAN, NAN, NAN });
  else
    CU_LAUNCH(look_up<float>, cu_blocks(n), CU_THREADS, 0, w, c->in[1].i32, y, n, cu_divisor(D), DIM(c, 'V'),
              NAN);
}

/* sum_rows: K indices to a row of y; those out of range count for nothing. */
CU_KERNEL sum_up(const float *w, const int32_t *index, float *y, long n, cu_divisor D, int K, int rows) {
  CU_LOOP(i, n) {
    long d;
    const int32_t *mine = index + D.divide(i, &d) * K;
    float sum = 0;
    for (int k = 0; k < K; k++)
      if (mine[k] >= 0 && mine[k] < rows) sum += w[mine[k] * D.by + d];
    y[i] = sum;
  }
}

static void forward_sum(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(sum_up, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].i32, c->out[0].data, n, cu_divisor(DIM(c, 'D')), DIM(c, 'K'),
            DIM(c, 'V'));
}

/* ---- sorting: an entry is an index and the row it came from ---- */

enum { DIGITS = 256, CHUNK = 2048, WARPS = CU_THREADS / 32 };
static_assert((int)DIGITS == (int)CU_THREADS, "a thread to a digit");

struct List { int *key, *row; };

/* Indices out of range sort behind all others. */
CU_KERNEL list_indices(const int32_t *index, const List &to, int n, int rows) {
  CU_LOOP(i, n) {
    to.key[i] = index[i] >= 0 && index[i] < rows ? index[i] : rows;
    to.row[i] = (int)i;
  }
}

/* counts[digit][chunk] */
CU_KERNEL count_digits(const int *key, int *counts, int n, int shift) {
  cu_smem<int> bins = CU_SHARED(int, 0);
  const int tid = (int)threadIdx.x, from = (int)blockIdx.x * CHUNK, end = cu_min(from + CHUNK, n);
  bins[tid] = 0;
  __syncthreads();
  for (int i = from + tid; i < end; i += CU_THREADS) atomicAdd(&bins[key[i] >> shift & (DIGITS - 1)], 1);
  __syncthreads();
  counts[tid * gridDim.x + blockIdx.x] = bins[tid];
}

/* Each count becomes the sum of all before it, digit by digit and in each chunk by chunk. */
CU_KERNEL sum_counts(int *counts, int chunks) {
  cu_smem<int> total = CU_SHARED(int, 0);
  const int tid = (int)threadIdx.x, lane = tid % 32;
  int *mine = counts + (long)tid * chunks, own = 0, upto, before = 0;
  for (int k = 0; k < chunks; k++) own += mine[k];
  upto = own;
  for (int by = 1; by < 32; by *= 2) {
    const int x = __shfl_up_sync(0xffffffffu, upto, by);
    if (lane >= by) upto += x;
  }
  if (lane == 31) total[tid / 32] = upto;
  __syncthreads();
  for (int w = 0; w < tid / 32; w++) before += total[w];
  before += upto - own;
  for (int k = 0; k < chunks; k++) {
    const int x = mine[k];
    mine[k] = before;
    before += x;
  }
}

/* A chunk's entries to their places, CU_THREADS at a time and in order.  An entry stands behind those of its
** digit in earlier rounds, in earlier warps, and in lower lanes. */
CU_KERNEL move_entries(const List &from, const List &to, const int *counts, int n, int shift) {
  cu_smem<int> next = CU_SHARED(int, 0), place = CU_SHARED(int, DIGITS * sizeof(int));     /* [WARPS][DIGITS] */
  const int tid = (int)threadIdx.x, lane = tid % 32, warp = tid / 32, first = (int)blockIdx.x * CHUNK;
  next[tid] = counts[tid * gridDim.x + blockIdx.x];
  for (int i = first + tid; i - tid < cu_min(first + CHUNK, n); i += CU_THREADS) {
    const bool real = i < n;
    const int key = real ? from.key[i] : 0, digit = key >> shift & (DIGITS - 1);
    unsigned alike = __ballot_sync(0xffffffffu, real);
    for (int bit = 1; bit < DIGITS; bit *= 2) {
      const unsigned set = __ballot_sync(0xffffffffu, (digit & bit) != 0);
      alike &= digit & bit ? set : ~set;
    }
    const int ahead = __popc(alike & ((1u << lane) - 1));
    for (int w = 0; w < WARPS; w++) place[w * DIGITS + tid] = 0;
    __syncthreads();
    if (real && !ahead) place[warp * DIGITS + digit] = __popc(alike);
    __syncthreads();
    int at = next[tid];
    for (int w = 0; w < WARPS; w++) {
      const int here = place[w * DIGITS + tid];
      place[w * DIGITS + tid] = at;
      at += here;
    }
    next[tid] = at;
    __syncthreads();
    if (real) {
      at = place[warp * DIGITS + digit] + ahead;
      to.key[at] = key;
      to.row[at] = from.row[i];
    }
    __syncthreads();
  }
}

/* The sorted list of indices; it uses scratch 0, 1 and 2. */
static List sorted(const mn_call *c, int n, int rows) {
  const int chunks = (int)cu_parts(n, CHUNK);
  List a, b;
  a.key = (int *)mn_scratch(c->ctx, 0, 2 * (long)n), a.row = a.key + n;
  b.key = (int *)mn_scratch(c->ctx, 1, 2 * (long)n), b.row = b.key + n;
  int *counts = (int *)mn_scratch(c->ctx, 2, (long)DIGITS * chunks);
  CU_LAUNCH(list_indices, cu_blocks(n), CU_THREADS, 0, c->in[1].i32, a, n, rows);
  for (int shift = 0; shift < 32 && rows >> shift; shift += 8) {
    CU_LAUNCH(count_digits, chunks, CU_THREADS, DIGITS * sizeof(int), a.key, counts, n, shift);
    CU_LAUNCH(sum_counts, 1, CU_THREADS, WARPS * sizeof(int), counts, chunks);
    CU_LAUNCH(move_entries, chunks, CU_THREADS, (1 + WARPS) * DIGITS * sizeof(int), a, b, counts, n, shift);
    const List other = a;
    a = b, b = other;
  }
  return a;
}

/* ---- sums ---- */

enum { PIECE = 128, AHEAD = 8 };

/* A block sums a piece, a thread a column of it.  parts[piece][0] is the end of a run that came from the piece
** before, [1] the beginning of one that continues in the next; a run through the whole piece is [0].  `each` indices share a row of dy. */
CU_KERNEL sum_pieces(const List &list, const float *dy, float *dw, float *parts, int n, int each, int D, int rows, bool add) {
  const int from = (int)blockIdx.x * PIECE, end = cu_min(from + PIECE, n);
  const int before = from ? list.key[from - 1] : -1, after = end < n ? list.key[end] : -1;
  float *part = parts + (long)blockIdx.x * 2 * D;
  for (int d = (int)(blockIdx.y * blockDim.x + threadIdx.x); d < D; d += (int)(gridDim.y * blockDim.x)) {
    float sum = 0;
    bool first = true;                              /* still in the run that the piece begins with */
    for (int i = from; i < end; i += AHEAD) {
      float x[AHEAD];
      int key[AHEAD + 1];
      CU_UNROLL
      for (int k = 0; k <= AHEAD; k++) {
        key[k] = i + k < end ? list.key[i + k] : after;
        if (k < AHEAD) x[k] = i + k < end && key[k] < rows ? dy[(long)(list.row[i + k] / each) * D + d] : 0.0f;
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        if (i + k >= end) break;
        sum += x[k];
        const bool last = i + k + 1 == end;
        if (!last && key[k + 1] == key[k]) continue;
        const bool came = first && key[k] == before, goes = last && key[k] == after;
        float *to = came ? part + d : goes ? part + D + d : dw + (long)key[k] * D + d;
        if (key[k] < rows) *to = sum + (add && !came && !goes ? *to : 0.0f);
        sum = 0;
        first = false;
      }
    }
  }
}

/* Runs over several pieces: the piece where one began collects it. */
CU_KERNEL join_pieces(const int *key, const float *parts, float *dw, int n, int D, int rows, bool add) {
  const int from = (int)blockIdx.x * PIECE, end = from + PIECE;
  if (end >= n || key[end - 1] != key[end] || key[end] >= rows) return;
  const int run = key[end];
  if (from && key[from] == run && key[from - 1] == run) return;
  for (int d = (int)(blockIdx.y * blockDim.x + threadIdx.x); d < D; d += (int)(gridDim.y * blockDim.x)) {
    const float *part = parts + (long)blockIdx.x * 2 * D + D + d;
    float sum = *part;
    part += D;
    for (long i = end; i < n && key[i] == run; i += (long)AHEAD * PIECE) {
      float x[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++, part += 2 * D) {
        const long at = i + (long)k * PIECE;
        x[k] = at < n && key[at] == run ? *part : 0.0f;
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) sum += x[k];
    }
    float *to = dw + (long)run * D + d;
    *to = sum + (add ? *to : 0.0f);
  }
}

static void gradient(mn_call *c, int each) {
  const int n = (int)c->in[1].n, D = DIM(c, 'D'), rows = DIM(c, 'V'), pieces = (int)cu_parts(n, PIECE);
  const bool add = mn_accumulates(c, 0);
  float *dw = c->in[0].grad;
  if (!add) cu_zero(dw, sizeof *dw * (size_t)c->in[0].n);
  const List list = sorted(c, n, rows);
  float *parts = mn_scratch(c->ctx, 3, 2 * (long)pieces * D);
  const int threads = D >= CU_THREADS ? (int)CU_THREADS : (D + 31) / 32 * 32;
  const dim3 grid((unsigned)pieces, (unsigned)cu_min(cu_parts(D, threads), 65535L));
  CU_LAUNCH(sum_pieces, grid, threads, 0, list, c->out[0].grad, dw, parts, n, each, D, rows, add);
  CU_LAUNCH(join_pieces, grid, threads, 0, list.key, parts, dw, n, D, rows, add);
}

static void backward(mn_call *c) { gradient(c, 1); }
static void backward_sum(mn_call *c) { gradient(c, DIM(c, 'K')); }

MN_KERNEL(embedding, forward, backward)
MN_KERNEL(sum_rows, forward_sum, backward_sum)
