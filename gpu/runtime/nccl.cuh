/* nccl.cuh -- the NCCL functions that mpi.cu calls, from NCCL's header, or declared here if it is missing.  The
** library is loaded only if several ranks have a GPU each, so nothing is linked. */
#pragma once
#include "kernel.cuh"

#ifndef __CUDACC__
#include "emulator/nccl.h"
#elif __has_include(<nccl.h>)
#include <dlfcn.h>
#include <nccl.h>
#else
#include <dlfcn.h>
typedef struct ncclComm *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
enum ncclResult_t { ncclSuccess };
enum ncclDataType_t { ncclFloat = 7, ncclDouble = 8 };
extern "C" {
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int to, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int from, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *mine, void *all, size_t n, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
const char *ncclGetErrorString(ncclResult_t result);
}
#endif

struct cu_nccl {
  decltype(&ncclGetUniqueId) GetUniqueId;
  decltype(&ncclCommInitRank) CommInitRank;
  decltype(&ncclGroupStart) GroupStart;
  decltype(&ncclGroupEnd) GroupEnd;
  decltype(&ncclSend) Send;
  decltype(&ncclRecv) Recv;
  decltype(&ncclAllGather) AllGather;
  decltype(&ncclGetErrorString) GetErrorString;

  /* Is it to be had? */
  bool find() {
#ifdef __CUDACC__
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    bool whole = library != NULL;
#define FIND(name) whole = whole && (name = (decltype(name))dlsym(library, "nccl" #name)) != NULL
    FIND(GetUniqueId);
    FIND(CommInitRank);
    FIND(GroupStart);
    FIND(GroupEnd);
    FIND(Send);
    FIND(Recv);
    FIND(AllGather);
    FIND(GetErrorString);
#undef FIND
    return whole;
#else
    *this = { ncclGetUniqueId, ncclCommInitRank, ncclGroupStart, ncclGroupEnd, ncclSend, ncclRecv, ncclAllGather,
              ncclGetErrorString };
    return true;
#endif
  }
};
