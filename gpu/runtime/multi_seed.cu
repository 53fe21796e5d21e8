/* multi_seed.cu -- graphs, and the work of several seeds as one.
** Seeds that take turns (lua/mneme/commands/multi_seed.lua) ask for the same work with parameters of their own.  So what each asks for
** is put off until one of them waits, which is when all have come to a wait; then it goes to the stream step by step, and
** what is alike at a step goes together: a kernel as one grid, a product as one batch, graphs as one graph in which the
** same holds.  As many launches as one seed has then do for all of them.  What only one asks for goes alone.
** A graph is the work that it is made of, kept; it becomes CUDA's when it is first launched, and so does each set of
** graphs that is launched together. */
#include <map>
#include <string>
#include "multi_seed.cuh"

typedef std::vector<std::unique_ptr<cu_piece>> Works;

struct cu_graph {
  uint64_t name;                       /* graphs of several seeds that have one name are launched together */
  Works works;
};

namespace {

/* Graphs of several seeds, or of one, as CUDA's. */
struct Joined {
  cudaGraphExec_t exec = NULL;
  const void **table = NULL;           /* pointers that its work reads, on the device */
};

struct Turns {
  int seed = 0;                        /* whose turn it is */
  bool several = false;
  Works put_off[CU_SEEDS];
  int at_work = 1;                     /* seeds that have put work off which is being done */
  cu_graph *graph = NULL;              /* that is being made */
  std::map<std::vector<cu_graph *>, Joined> joined;
  std::vector<int> doing = { 0 };      /* the seeds whose work is being done, who fail together */
  std::string failure[CU_SEEDS];
};
thread_local Turns turns;

struct Group {
  std::vector<cu_piece *> all;
  std::vector<int> of;                 /* the list that each is from */
};

/* What is left of a list of work. */
struct Rest {
  const Works *all;
  size_t at = 0;
  size_t size() const { return all->size() - at; }
  const cu_piece &operator[](size_t i) const { return *(*all)[at + i]; }
  /* How far off a piece like w is; AHEAD: not near. */
  static constexpr size_t AHEAD = 64;
  size_t until(const cu_piece &w) const {
    const size_t n = std::min(size(), AHEAD);
    for (size_t i = 0; i < n; i++) if ((*this)[i].like(w)) return i;
    return AHEAD;
  }
};

/* Whose piece comes next.  Where seeds differ, as where one has cut an episode off, that one goes ahead which soonest has
** what another has now: then they go on together.  Of equals the one with most left; SIZE_MAX: nobody has any. */
size_t who_goes(const std::vector<Rest> &rests) {
  std::vector<const Rest *> heads;     /* one of each kind that is next */
  for (const Rest &r : rests) {
    const auto alike = [&](const Rest *h) { return (*h)[0].like(r[0]); };
    if (r.size() && std::none_of(heads.begin(), heads.end(), alike)) heads.push_back(&r);
  }
  size_t ahead = SIZE_MAX, least = SIZE_MAX;
  for (size_t k = 0; k < rests.size(); k++) {
    size_t soonest = Rest::AHEAD;
    if (!rests[k].size()) continue;
    for (const Rest *h : heads)
      if (heads.size() > 1 && h != &rests[k] && !rests[k][0].like((*h)[0])) soonest = std::min(soonest, rests[k].until((*h)[0]));
    if (ahead == SIZE_MAX || soonest < least || (soonest == least && rests[k].size() > rests[ahead].size())) ahead = k, least = soonest;
  }
  return ahead;
}

/* Lists of work as one list of groups, in which each keeps its order. */
std::vector<Group> together(const std::vector<const Works *> &lists) {
  std::vector<Group> groups;
  std::vector<Rest> rests;
  for (const Works *w : lists) rests.push_back({ w });
  for (size_t ahead; (ahead = who_goes(rests)) != SIZE_MAX;) {
    const cu_piece &first = rests[ahead][0];
    Group g;
    for (size_t k = 0; k < rests.size(); k++) {
      Rest &mine = rests[k];
      if (k != ahead && (!mine.size() || !first.like(mine[0]))) continue;
      g.all.push_back((*mine.all)[mine.at++].get());
      g.of.push_back((int)k);
    }
    groups.push_back(std::move(g));
  }
  return groups;
}

void undo(const Joined &j) {
  if (j.exec) cu_failed(cudaGraphExecDestroy(j.exec), "freeing a graph");
  cu_failed(cudaFree(j.table), "freeing a graph");
}

/* What these graphs hold, captured. */
bool join(const std::vector<cu_graph *> &graphs, Joined *to) {
  std::vector<const Works *> lists;
  for (const cu_graph *g : graphs) lists.push_back(&g->works);
  const std::vector<Group> groups = together(lists);
  std::vector<const void *> pointers;
  std::vector<size_t> from;            /* of a group's pointers */
  for (const Group &g : groups) {
    from.push_back(pointers.size());
    if (g.all.size() > 1) g.all[0]->pointers(g.all.data(), (int)g.all.size(), &pointers);
  }
  const size_t bytes = pointers.size() * sizeof *pointers.data();
  if (bytes && (cu_failed(cudaMalloc((void **)&to->table, bytes), "memory for a graph")
                || cu_failed(cudaMemcpyAsync(to->table, pointers.data(), bytes, cudaMemcpyHostToDevice, MN_STREAM), "a graph")))
    return false;
  cudaGraph_t graph = NULL;
  if (cu_failed(cudaStreamBeginCapture(MN_STREAM, cudaStreamCaptureModeThreadLocal), "capturing a graph")) return false;
  for (size_t i = 0; i < groups.size(); i++) groups[i].all[0]->run(groups[i].all.data(), (int)groups[i].all.size(), to->table + from[i]);
  if (cu_failed(cudaStreamEndCapture(MN_STREAM, &graph), "capturing a graph")) return false;
  const bool bad = cu_failed(cudaGraphInstantiate(&to->exec, graph, 0), "making a graph");
  cudaGraphDestroy(graph);
  return !bad;
}

struct Replay : cu_piece {
  cu_graph *graph;
  Replay(cu_graph *g) : graph(g) {}
  bool like(const cu_piece &w) const override {
    const auto *o = dynamic_cast<const Replay *>(&w);
    return o && o->graph->name == graph->name && o->graph->works.size() == graph->works.size();
  }
  /* Only graphs of all seeds become one: there are as many of those as graphs of a seed, of some seeds any number. */
  void run(cu_piece *const *all, int n, const void *const *) override {
    std::vector<cu_graph *> graphs;
    if (n > 1 && n < turns.at_work) {
      for (int i = 0; i < n; i++) run(all + i, 1, NULL);
      return;
    }
    for (int i = 0; i < n; i++) graphs.push_back(static_cast<Replay *>(all[i])->graph);
    auto found = turns.joined.find(graphs);
    if (found == turns.joined.end()) {
      Joined j;
      if (!join(graphs, &j)) return undo(j);
      found = turns.joined.emplace(graphs, j).first;
    }
    cu_failed(cudaGraphLaunch(found->second.exec, MN_STREAM), "launching a graph");
  }
};

}  // namespace

/* ---- failures ---- */

void cu_fail(const char *what, const char *why) {
  for (int seed : turns.doing)
    if (turns.failure[seed].empty()) turns.failure[seed] = std::string(what) + ": " + why;
}

bool cu_failure(char *why, size_t n) {
  std::string &mine = turns.failure[turns.seed];
  if (mine.empty()) return false;
  snprintf(why, n, "%s", mine.c_str());
  mine.clear();
  return true;
}

/* ---- turns ---- */

bool cu_puts_off() { return turns.several || turns.graph; }
void cu_put_off(std::unique_ptr<cu_piece> w) {
  (turns.graph ? turns.graph->works : turns.put_off[turns.seed]).push_back(std::move(w));
}

void cu_turn_of(int seed) {
  turns.seed = seed;
  turns.doing = { seed };
  if (seed) turns.several = true;
}

void cu_catch_up() {
  if (turns.put_off[turns.seed].empty()) return;     /* done with another's; that one may be ahead by now */
  std::vector<int> seeds;
  std::vector<Works> work;
  std::vector<const Works *> lists;
  for (int k = 0; k < CU_SEEDS; k++) {
    if (turns.put_off[k].empty()) continue;
    seeds.push_back(k);
    work.push_back(std::move(turns.put_off[k]));
    turns.put_off[k].clear();
  }
  for (const Works &w : work) lists.push_back(&w);
  turns.at_work = (int)lists.size();
  for (const Group &g : together(lists)) {
    turns.doing.clear();
    for (int k : g.of) turns.doing.push_back(seeds[(size_t)k]);
    g.all[0]->run(g.all.data(), (int)g.all.size(), NULL);
    cu_failed(cudaGetLastError(), "launching a kernel");
  }
  turns.doing = { turns.seed };
}

/* ---- graphs ---- */

bool cu_in_graph() { return turns.graph; }
void cu_graph_begin(uint64_t name) { turns.graph = new cu_graph{ name, {} }; }
cu_graph *cu_graph_end() { return std::exchange(turns.graph, nullptr); }
void cu_graph_launch(cu_graph *g) { cu_do(Replay(g)); }

void cu_graph_free(cu_graph *g) {
  cu_catch_up();
  for (auto j = turns.joined.begin(); j != turns.joined.end();) {
    const bool held = std::find(j->first.begin(), j->first.end(), g) != j->first.end();
    if (held) undo(j->second);
    j = held ? turns.joined.erase(j) : std::next(j);
  }
  delete g;
}
