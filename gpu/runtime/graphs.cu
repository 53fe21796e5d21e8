/* graphs.cu -- captures the launches of a run of a plan as one CUDA graph; records failures on the host's side. */
#include <deque>
#include <string>
#include <utility>
#include "graphs.cuh"

struct cu_graph {
  cudaGraphExec_t exec = NULL;
  std::deque<std::string> kept;        /* bytes of the host that its copies read at each launch */
};

static thread_local cu_graph *capturing;
static thread_local std::string failure;

/* ---- failures ---- */

void cu_fail(const char *what, const char *why) {
  if (failure.empty()) failure = std::string(what) + ": " + why;
}

bool cu_failure(char *why, size_t n) {
  if (failure.empty()) return false;
  snprintf(why, n, "%s", failure.c_str());
  failure.clear();
  return true;
}

/* ---- graphs ---- */

bool cu_in_graph() { return capturing; }

void cu_graph_begin() {
  capturing = new cu_graph;
  cu_failed(cudaStreamBeginCapture(MN_STREAM, cudaStreamCaptureModeThreadLocal), "capturing a graph");
}

cu_graph *cu_graph_end() {
  cu_graph *g = std::exchange(capturing, nullptr);
  cudaGraph_t graph = NULL;
  const bool bad = cu_failed(cudaStreamEndCapture(MN_STREAM, &graph), "capturing a graph")
                   || cu_failed(cudaGraphInstantiate(&g->exec, graph, 0), "making a graph");
  if (graph) cudaGraphDestroy(graph);
  if (!bad && failure.empty()) return g;
  cu_graph_free(g);
  return NULL;
}

void cu_graph_launch(cu_graph *g) { cu_failed(cudaGraphLaunch(g->exec, MN_STREAM), "launching a graph"); }

void cu_graph_free(cu_graph *g) {
  if (g && g->exec) cu_failed(cudaGraphExecDestroy(g->exec), "freeing a graph");
  delete g;
}

const void *cu_graph_keep(const void *host, size_t bytes) {
  capturing->kept.emplace_back((const char *)host, bytes);
  return capturing->kept.back().data();
}
