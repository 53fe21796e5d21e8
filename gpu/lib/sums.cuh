/* sums.cuh -- sums over some axes of several broadcast tensors, in double and in a fixed order:
** cu_sum(c, fold, term, to) makes to[j] the sum of term(at), where `at` says where in each tensor; cu_sum_to makes it finish(sum).
** Where memory runs along the sum a team of threads takes each sum; where it runs across, neighbouring
** threads take neighbouring sums.  Few long sums are cut into pieces: MN_SCRATCH_SUMS holds their parts. */
#pragma once
#include "row_teams.cuh"
#include "broadcast.cuh"

enum { MN_SCRATCH_SUMS = 3 };

struct cu_fold {
  cu_walk keep, over;                       /* the axes that stay, and those that are summed away */
  long kept = 1, summed = 1;
  bool along = false;                       /* the innermost axis of all is one of `over` */
};

/* How the work is cut: pieces of each sum, and how long they are. */
struct cu_cut { long pieces, piece; };

static inline cu_cut cu_cut_of(long summed, long blocks, long least) {
  const long most = cu_parts(summed, least), wanted = cu_parts(1024, blocks);
  const long pieces = cu_max(cu_min(most, wanted), 1L), piece = cu_parts(summed, pieces);
  return { cu_parts(summed, piece), piece };
}

struct cu_scaled {
  double by;
  __device__ __forceinline__ float operator()(double sum) const { return (float)(by * sum); }
};

template <class Term, class Finish>
CU_KERNEL cu_fold_along(const Term &term, const cu_fold &f, cu_divisor kept, const cu_cut &cut, int width, double *parts,
                        float *to, Finish finish, bool add) {
  const cu_team team(width);
  const long rows = f.kept * cut.pieces;
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    long j = 0, base[CU_WALKED] = {};
    double sum = 0;
    if (row < rows) {
      const long from = kept.divide(row, &j) * cut.piece, end = cu_min(from + cut.piece, f.summed);
      f.keep.find(j, base);
      for (long r = from + team.lane; r < end; r += width) {
        long at[CU_WALKED];
        CU_UNROLL
        for (int k = 0; k < CU_WALKED; k++) at[k] = base[k];
        f.over.find(r, at);
        sum += (double)term(at);
      }
    }
    sum = team.sum(sum);
    if (row >= rows || team.lane) continue;
    if (parts) parts[row] = sum;
    else to[j] = finish(sum) + (add ? to[j] : 0.0f);
  }
}

/* A block: `columns` sums, each by CU_THREADS / columns threads that take every so-manieth term. */
template <class Term, class Finish>
CU_KERNEL cu_fold_across(const Term &term, const cu_fold &f, cu_divisor stripes, const cu_cut &cut, int columns, double *parts,
                         float *to, Finish finish, bool add) {
  const int column = (int)threadIdx.x & (columns - 1), first = (int)threadIdx.x / columns, lanes = CU_THREADS / columns;
  cu_smem<double> part = CU_SHARED(double, 0);
  for (long block = blockIdx.x; block < stripes.by * cut.pieces; block += gridDim.x) {
    long stripe, base[CU_WALKED] = {};
    const long p = stripes.divide(block, &stripe), j = stripe * columns + column;
    double sum = 0;
    if (j < f.kept) {
      const long end = cu_min((p + 1) * cut.piece, f.summed);
      f.keep.find(j, base);
      for (long r = p * cut.piece + first; r < end; r += lanes) {
        long at[CU_WALKED];
        CU_UNROLL
        for (int k = 0; k < CU_WALKED; k++) at[k] = base[k];
        f.over.find(r, at);
        sum += (double)term(at);
      }
    }
    part[(int)threadIdx.x] = sum;
    __syncthreads();
    for (int l = 1; !first && l < lanes; l++) sum += part[l * columns + column];
    __syncthreads();
    if (first || j >= f.kept) continue;
    if (parts) parts[p * f.kept + j] = sum;
    else to[j] = finish(sum) + (add ? to[j] : 0.0f);
  }
}

template <class Finish>
CU_KERNEL cu_fold_parts(const double *parts, long pieces, long kept, float *to, Finish finish, bool add) {
  CU_LOOP(j, kept) {
    double sum = 0;
    for (long p = 0; p < pieces; p++) sum += parts[p * kept + j];
    to[j] = finish(sum) + (add ? to[j] : 0.0f);
  }
}

/* to[j] = finish(sum of term), or added to it.  c is for the scratch buffer. */
template <class Term, class Finish>
static void cu_sum_to(const mn_call *c, const cu_fold &f, Term term, float *to, Finish finish, bool add) {
  int wide = 1;                             /* threads of a team, or columns of a block */
  if (f.along) wide = cu_team_width(f.summed);
  else while (wide < 32 && wide < f.kept) wide *= 2;
  const long sums = f.along ? CU_THREADS / wide : wide, stripes = cu_parts(f.kept, sums);
  const cu_cut cut = cu_cut_of(f.summed, stripes, f.along ? 16 * wide : 16 * (CU_THREADS / wide));
  double *parts = cut.pieces == 1 ? NULL : (double *)mn_scratch(c->ctx, MN_SCRATCH_SUMS, 2 * f.kept * cut.pieces);
  if (f.along)
    CU_LAUNCH((cu_fold_along<Term, Finish>), cu_team_blocks(f.kept * cut.pieces, wide), CU_THREADS, CU_TEAM_SHARED, term, f,
              cu_divisor(f.kept), cut, wide, parts, to, finish, add);
  else
    CU_LAUNCH((cu_fold_across<Term, Finish>), (unsigned)cu_min(stripes * cut.pieces, (long)CU_BLOCKS), CU_THREADS,
              CU_THREADS * sizeof(double), term, f, cu_divisor(stripes), cut, wide, parts, to, finish, add);
  if (parts)
    CU_LAUNCH(cu_fold_parts<Finish>, cu_blocks(f.kept), CU_THREADS, 0, (const double *)parts, cut.pieces, f.kept, to,
              finish, add);
}

/* to[j] = scale * sum of term, or added to it. */
template <class Term>
static void cu_sum(const mn_call *c, const cu_fold &f, Term term, float *to, double scale = 1, bool add = false) {
  cu_sum_to(c, f, term, to, cu_scaled{ scale }, add);
}

/* A term that is one number of one tensor, the walk's first. */
struct cu_number {
  const float *x;
  __device__ __forceinline__ float operator()(const long *at) const { return x[at[0]]; }
};

/* x[outer, size, inner] summed over its middle axis; the walk's second tensor is [outer, inner]. */
static inline cu_fold cu_fold_of(long outer, long size, long inner) {
  cu_fold f;
  const long one[CU_WALKED] = { 1, 1 }, step[CU_WALKED] = { inner }, far[CU_WALKED] = { size * inner, inner };
  if (inner > 1) f.keep.add(inner, one);
  f.keep.add(outer, far);
  f.over.add(size, step);
  f.kept = outer * inner;
  f.summed = size;
  f.along = inner == 1;
  return f;
}
