/* mpi.cuh -- sums over all ranks, for kernels that need them: see mpi.cu. */
#pragma once
#include "kernel.cuh"

/* The sums over ranks of n numbers, in place, in the order of ranks.  They lie in managed memory; `which` is the
** scratch that this may use.  Only work that is launched afterwards sees them. */
void cu_ranks_sum(mn_ctx *mn, int which, double *at, int n);
