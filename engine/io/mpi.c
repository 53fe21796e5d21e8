/* mpi.c -- processes started by mpirun (Open MPI) that train one agent together.
** The library is loaded only under mpirun, so building and running one process do not need it.  The declarations
** below are those of the headers of Open MPI 4 and 5.  Sums are made in the order of ranks,
** so equal runs give equal bits.  If communication fails, MPI itself ends all processes. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "op.h"

enum { BLOCK = 1 << 18, PIECES = 256 };      /* floats that are added up at a time, of that many places */

typedef struct piece { float *at; int n; } piece;
typedef void *handle;            /* Open MPI's communicators and types are addresses */

static struct {
  int rank, size;                /* size 0: not begun, or alone */
  handle world, byte;
  float *send, *receive;
  int held, pieces;              /* in `send`, and where they came from */
  piece piece[PIECES];
  int (*Init_thread)(int *argc, char ***argv, int wanted, int *given);
  int (*Comm_rank)(handle world, int *rank);
  int (*Comm_size)(handle world, int *size);
  int (*Bcast)(void *at, int n, handle type, int root, handle world);
  int (*Gather)(const void *mine, int n, handle type, void *all, int each, handle of, int root, handle world);
  int (*Allgather)(const void *mine, int n, handle type, void *all, int each, handle of, handle world);
  int (*Alltoall)(const void *mine, int n, handle type, void *all, int each, handle of, handle world);
  int (*Finalize)(void);
  int (*Abort)(handle world, int status);
} mpi;

static int resolve(void *library) {
  const struct { const char *name; void *to; } all[] = {
    { "MPI_Init_thread", &mpi.Init_thread }, { "MPI_Comm_rank", &mpi.Comm_rank }, { "MPI_Comm_size", &mpi.Comm_size },
    { "MPI_Bcast", &mpi.Bcast }, { "MPI_Gather", &mpi.Gather }, { "MPI_Allgather", &mpi.Allgather },
    { "MPI_Alltoall", &mpi.Alltoall }, { "MPI_Finalize", &mpi.Finalize }, { "MPI_Abort", &mpi.Abort },
    { "ompi_mpi_comm_world", &mpi.world }, { "ompi_mpi_byte", &mpi.byte },
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    void *found = dlsym(library, all[i].name);
    if (!found) return -1;
    memcpy(all[i].to, &found, sizeof found);
  }
  return 0;
}

/* Join the other processes, where mpirun started several; alone, or called again, it does nothing.  NULL, or why it
** cannot be.  From here on only rank 0 is heard on stdout. */
const char *mn_ranks_begin(void) {
  const char *others = getenv("OMPI_COMM_WORLD_SIZE");
  if (mpi.size || !others || atoi(others) < 2) return NULL;
  /* RTLD_GLOBAL: Open MPI's own plugins look for its symbols there. */
  void *library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  if (!library) library = dlopen("libmpi.so", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return dlerror();
  if (resolve(library)) return "libmpi.so is not Open MPI's";
  /* A rank that waits yields the processor: on a busy machine the others may be the ranks that it waits for. */
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  /* All that MPI is given is the host's: it need not look for a GPU, whose driver may be calling it. */
  setenv("OMPI_MCA_opal_cuda_support", "0", 0);
  setenv("OMPI_MCA_accelerator", "null", 0);
  /* A GPU's work calls from a thread of its driver, one call at a time: MPI_THREAD_SERIALIZED. */
  int given;
  if (mpi.Init_thread(NULL, NULL, 2, &given)) return "MPI_Init_thread failed";
  mpi.Comm_rank(mpi.world, &mpi.rank);
  mpi.Comm_size(mpi.world, &mpi.size);
  size_t room = sizeof(float) * ((size_t)BLOCK + (size_t)mpi.size);
  mpi.send = malloc(room);
  mpi.receive = malloc(room);
  if (!mpi.send || !mpi.receive) return "out of memory";
  if (mpi.rank > 0 && !freopen("/dev/null", "w", stdout)) return "/dev/null cannot be written";
  return NULL;
}

int mn_rank(void) { return mpi.rank; }
int mn_ranks(void) { return mpi.size > 1 ? mpi.size : 1; }

/* Take the mean of what is held.  Each rank adds up its own stretch of the numbers of all, in the order of ranks, and
** hands it round: so every rank has the same bits. */
static void exchange(void) {
  int R = mpi.size, part = (mpi.held + R - 1) / R, bytes = part * (int)sizeof(float);
  memset(mpi.send + mpi.held, 0, sizeof(float) * (size_t)(part * R - mpi.held));
  mpi.Alltoall(mpi.send, bytes, mpi.byte, mpi.receive, bytes, mpi.byte, mpi.world);
  for (int i = 0; i < part; i++) {
    float sum = mpi.receive[i];
    for (int r = 1; r < R; r++) sum += mpi.receive[r * part + i];
    mpi.send[i] = sum / (float)R;
  }
  mpi.Allgather(mpi.send, bytes, mpi.byte, mpi.receive, bytes, mpi.byte, mpi.world);
  const float *from = mpi.receive;
  for (int i = 0; i < mpi.pieces; from += mpi.piece[i++].n)
    memcpy(mpi.piece[i].at, from, sizeof(float) * (size_t)mpi.piece[i].n);
  mpi.held = mpi.pieces = 0;
}

/* The mean over ranks of every number, in place.  more: other numbers follow in another call, and the means are there
** after the last one; what is sent at a time is large, since each exchange waits for all. */
void mn_ranks_mean(float *x, double n, bool more) {
  if (mn_ranks() == 1) return;
  for (long first = 0; first < (long)n;) {
    int room = BLOCK - mpi.held, count = (long)n - first < room ? (int)((long)n - first) : room;
    memcpy(mpi.send + mpi.held, x + first, sizeof(float) * (size_t)count);
    mpi.piece[mpi.pieces++] = (piece){ x + first, count };
    mpi.held += count;
    first += count;
    if (mpi.held == BLOCK || mpi.pieces == PIECES) exchange();
  }
  if (!more && mpi.held) exchange();
}

/* Sums over ranks of a few numbers, added in their order. */
void mn_ranks_sum(double *x, int n) {
  enum { AT_A_TIME = 8 };
  int R = mn_ranks();
  double *all = (double *)(void *)mpi.receive;
  for (int first = 0; R > 1 && first < n; first += AT_A_TIME) {
    int count = n - first < AT_A_TIME ? n - first : AT_A_TIME, bytes = count * (int)sizeof(double);
    double mine[AT_A_TIME];
    memcpy(mine, x + first, (size_t)bytes);
    mpi.Allgather(mine, bytes, mpi.byte, all, bytes, mpi.byte, mpi.world);
    for (int i = 0; i < count; i++) {
      x[first + i] = all[i];
      for (int r = 1; r < R; r++) x[first + i] += all[r * count + i];
    }
  }
}

/* `bytes` (below 2^31) of every rank, one after another, in `all`: on every rank, or on rank 0 alone. */
int mn_ranks_gather(mn_ctx *mn, const void *mine, void *all, double bytes, bool everyone) {
  if (mn_ranks() == 1) return memcpy(all, mine, (size_t)bytes), 0;
  if (bytes > INT32_MAX) return mn_fail(mn, "a rank has %.0f bytes to hand over, expected less than 2^31", bytes);
  int n = (int)bytes;
  if (everyone) mpi.Allgather(mine, n, mpi.byte, all, n, mpi.byte, mpi.world);
  else mpi.Gather(mine, n, mpi.byte, all, n, mpi.byte, 0, mpi.world);
  return 0;
}

/* Rank 0's bytes for all. */
void mn_ranks_share(void *at, double bytes) {
  const size_t room = BLOCK * sizeof(float), all = (size_t)bytes;
  for (size_t first = 0; mn_ranks() > 1 && first < all; first += room) {
    const size_t n = all - first < room ? all - first : room;
    memcpy(mpi.send, (char *)at + first, n);
    mpi.Bcast(mpi.send, (int)n, mpi.byte, 0, mpi.world);
    memcpy((char *)at + first, mpi.send, n);
  }
}

/* The last thing of a process.  fine: all ranks come here, each with the same status.  Otherwise the others are ended,
** and mpirun gives the status. */
void mn_ranks_end(bool fine, int status) {
  if (mn_ranks() == 1) return;
  if (fine) mpi.Finalize();
  else mpi.Abort(mpi.world, status);
}
