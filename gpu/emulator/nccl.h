/* nccl.h -- emulates the NCCL calls of mpi.cu.  Each rank is a process with its own emulated GPU; messages
** go through the host's exchange (engine/io/mpi.c), in stream order.  It reports messages whose length differs from the
** receiver's, a message outside of a group (its sender would wait for ever), and memory
** that is not the device's. */
#pragma once
#include "stream.h"
extern "C" {
#include "op.h"
}

typedef struct emu_nccl { int ranks, rank; } *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
enum ncclResult_t { ncclSuccess, ncclInvalidArgument = 4, ncclInvalidUsage = 5 };
enum ncclDataType_t { ncclFloat = 7, ncclDouble = 8 };

namespace emu {

struct Message { const void *from; void *to; size_t bytes; int peer; };       /* sent to `peer`, or received from it */
struct Group { int depth = 0; std::vector<Message> said; };
inline Group &group() { static Group g; return g; }

template <class... A> ncclResult_t wrong(ncclResult_t result, const char *fmt, A... args) {
  machine().kernel = "nccl";
  machine().reported.clear();
  report(fmt, args...);
  return result;
}

/* What all ranks do at once: each hands round its messages, and takes those to it. */
inline void meet(const std::vector<Message> &said) {
  const int R = mn_ranks(), me = mn_rank();
  std::vector<long> mine(2 * (size_t)R), all(2 * (size_t)R * (size_t)R);      /* bytes to each, then those from each */
  for (const Message &m : said) mine[(size_t)(m.to ? R + m.peer : m.peer)] += (long)m.bytes;
  mn_ranks_gather(NULL, mine.data(), all.data(), 16.0 * R, true);
  const auto sent = [&](int from, int to) { return all[(size_t)(2 * R * from + to)]; };
  size_t most = 1;
  for (int i = 0; i < R; i++) {
    size_t sum = 0;
    for (int j = 0; j < R; j++) {
      const long wanted = all[(size_t)(2 * R * j + R + i)];
      if (sent(i, j) != wanted)
        return (void)wrong(ncclSuccess, "nccl: rank %d sends %ld bytes to rank %d, which waits for %ld", i, sent(i, j), j, wanted);
      sum += (size_t)wanted;
    }
    most = std::max(most, sum);
  }
  std::string bytes, received((size_t)R * most, 0);
  for (int to = 0; to < R; to++)
    for (const Message &m : said) if (m.from && m.peer == to) bytes.append((const char *)m.from, m.bytes);
  bytes.resize(most);
  mn_ranks_gather(NULL, bytes.data(), received.data(), (double)most, true);
  for (int from = 0; from < R; from++) {
    const char *at = received.data() + (size_t)from * most;
    for (int to = 0; to < me; to++) at += sent(from, to);
    for (const Message &m : said)
      if (m.to && m.peer == from) {
        memcpy(m.to, at, m.bytes);
        at += m.bytes;
      }
  }
}

inline ncclResult_t say(const void *from, void *to, size_t n, ncclDataType_t type, int peer) {
  const size_t bytes = n * (type == ncclDouble ? 8 : 4);
  if (!group().depth) return wrong(ncclInvalidUsage, "nccl: a message outside of a group waits for ever");
  if (peer < 0 || peer >= mn_ranks()) return wrong(ncclInvalidArgument, "nccl: there is no rank %d", peer);
  if (!on_device(from ? from : to, bytes)) return wrong(ncclInvalidArgument, "nccl: memory that is not the device's");
  group().said.push_back({ from, to, bytes, peer });
  return ncclSuccess;
}

}  // namespace emu

inline const char *ncclGetErrorString(ncclResult_t r) { return r == ncclInvalidUsage ? "invalid usage" : "invalid argument"; }

inline ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  *id = {};
  snprintf(id->internal, sizeof id->internal, "%d", (int)getpid());
  return ncclSuccess;
}

inline ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  if (emu::in_capture("ranks meet")) return ncclInvalidUsage;
  std::vector<ncclUniqueId> all((size_t)mn_ranks());
  mn_ranks_gather(NULL, &id, all.data(), sizeof id, true);
  for (const ncclUniqueId &other : all) if (memcmp(&other, &id, sizeof id)) return ncclInvalidArgument;
  if (ranks != mn_ranks() || rank != mn_rank()) return ncclInvalidArgument;
  *comm = new emu_nccl{ ranks, rank };
  return ncclSuccess;
}

inline ncclResult_t ncclGroupStart() { return emu::group().depth++, ncclSuccess; }
inline ncclResult_t ncclGroupEnd() {
  using namespace emu;
  if (group().depth < 1) return ncclInvalidUsage;
  if (--group().depth) return ncclSuccess;
  enqueue("nccl", [said = std::exchange(group().said, {})] { meet(said); });
  return ncclSuccess;
}

inline ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int to, ncclComm_t, cudaStream_t) {
  return emu::say(from, nullptr, n, type, to);
}
inline ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int from, ncclComm_t, cudaStream_t) {
  return emu::say(nullptr, to, n, type, from);
}

/* `mine` may be this rank's part of `all`, and no other part of it. */
inline ncclResult_t ncclAllGather(const void *mine, void *all, size_t n, ncclDataType_t type, ncclComm_t comm, cudaStream_t s) {
  const size_t bytes = n * (type == ncclDouble ? 8 : 4);
  char *to = (char *)all;
  const char *from = (const char *)mine;
  if (from + bytes > to && from < to + (size_t)comm->ranks * bytes && from != to + (size_t)comm->rank * bytes)
    return emu::wrong(ncclInvalidArgument, "nccl: what is gathered overlaps what is sent");
  ncclGroupStart();
  ncclResult_t result = ncclSuccess;
  for (int r = 0; r < comm->ranks && !result; r++) {
    result = ncclSend(mine, n, type, r, comm, s);
    if (!result) result = ncclRecv(to + (size_t)r * bytes, n, type, r, comm, s);
  }
  const ncclResult_t ended = ncclGroupEnd();
  return result ? result : ended;
}
