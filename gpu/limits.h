/* limits.h -- what every GPU takes of a launch; sizes of a problem become sizes of a launch. */
#pragma once
#include <stddef.h>
#include <stdio.h>

enum { CU_BLOCK_THREADS = 1024, CU_BLOCK_SHARED = 48 << 10 };

/* Is a launch beyond a limit?  Then `why` says which.  D is dim3, CUDA's or the emulation's. */
template <class D> inline bool cu_beyond_limits(char (&why)[100], D grid, D block, size_t shared) {
  const unsigned long threads = 1ul * block.x * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || grid.x >> 31 || grid.y > 65535 || grid.z > 65535)
    snprintf(why, sizeof why, "%u x %u x %u blocks, a GPU takes 2147483647 x 65535 x 65535", grid.x, grid.y, grid.z);
  else if (!threads || threads > CU_BLOCK_THREADS || block.z > 64)
    snprintf(why, sizeof why, "%u x %u x %u threads, a block has up to %d, 64 of them deep", block.x, block.y, block.z, (int)CU_BLOCK_THREADS);
  else if (shared > CU_BLOCK_SHARED) snprintf(why, sizeof why, "%zu bytes of shared memory, a block is given %d", shared, (int)CU_BLOCK_SHARED);
  else return false;
  return true;
}
