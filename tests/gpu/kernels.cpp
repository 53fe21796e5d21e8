/* kernels.cpp -- kernels against the CPU's op, through the whole seam: plugin, memory, copies, kernel;
** and graphs of what an environment does.  Usage: test_gpu_kernels emu|cuda.  Prints "ok NAME" or "FAIL NAME: why". */
#include <dlfcn.h>
#include "op_case.h"
#include "result.h"

static mn_device *device;
static mn_ctx *mn;

/* The op on the CPU, then its kernel: in one go and in pieces of time, in every order of threads. */
static void check(const std::string &name, OpCase &op, double tolerance) {
  static const char *const order_name[] = { "forward", "reverse", "shuffled" };
  auto set_order = (void (*)(int))dlsym(device->library, "mn_emu_order");   /* only of the emulation */
  const mn_kernel *kernel = mn_device_kernel(NULL, device, op.entry, false);
  if (!kernel) return expect(name, false, mn_error(NULL));
  if (!op.run_cpu(mn)) return expect(name, false, mn_error(mn));
  for (int order = 0; order < (set_order ? 3 : 1); order++)
    for (int step : { 0, 1, 3 }) {
      if (set_order) set_order(order);
      std::string wrong = op.run_device(device, kernel, step);
      if (wrong.empty()) wrong = op.compare(tolerance);
      std::string what = name + ", rows " + (step ? "by " + std::to_string(step) : "at once");
      if (set_order) what += std::string(", threads ") + order_name[order];
      expect(what, wrong.empty(), wrong);
    }
}

struct Sizes { int T, B, H, D, E, V; };

/* One use of agalite.  `gate` says how gamma is made: of two factors, whole, or not at all. */
static void agalite(const char *form, int r, int M, Sizes s, const char *gate, bool states,
                    double tick, bool normalise = true, double den_clamp = 0) {
  const int K = s.D * s.E;
  OpCase op("agalite");
  op.option("form", form);
  op.option("r", r);
  op.option("normalise", normalise);
  op.option("den_clamp", den_clamp);
  op.input("q", { s.T, s.B, s.H, s.D }, 0, 1);
  op.input("k", { s.T, s.B, s.H, s.D }, 0, 1);
  op.input("v", { s.T, s.B, s.H, s.V }, -1, 1);
  if (s.E > 1) {
    op.input("p_q", { s.T, s.B, s.H, s.E }, 0, 1);
    op.input("p_k", { s.T, s.B, s.H, s.E }, 0, 1);
  }
  if (*gate != 'n') op.input("beta", { s.T, s.B, s.H, s.V }, 0, 1);
  if (*gate == 'o') {
    op.input("gamma", { s.T, s.B, s.H, s.D }, 0, 1);
    op.input("p_gamma", { s.T, s.B, s.H, s.E }, 0, 1);
  } else if (*gate == 'e') op.input("gamma", { s.T, s.B, s.H, K }, 0, 1);
  op.input("done", { s.T, s.B }, 0, 1.3);
  op.input("tick", { s.B }, tick, tick);
  if (states) {
    op.input("vs", { s.B, M, s.H, s.V }, -1, 1);
    op.input("ks", { s.B, M, s.H, K }, 0, 1);
    op.input("s", { s.B, s.H, K }, 0, 1);
  }
  std::string name = std::string("agalite ") + form + " r=" + std::to_string(r) + " " + gate;
  name += " K=" + std::to_string(K) + " V=" + std::to_string(s.V) + (states ? "" : " no states");
  check(name, op, 2e-6);
}

/* A step of an environment, new episodes among it, is kept as a graph and replayed with other actions,
** and nobody waits inside. */
static void replay(const char *where) {
  enum { B = 70, N = 16, LIMIT = 3 };
  mn_ctx *there = mn_ctx_new(where, 1);
  auto leaf = [&](int dtype, int n) {
    mn_tensor t;
    return mn_leaf_new(there, dtype, 1, &n, false, &t) ? nullptr : mn_tensor_data(there, &t);
  };
  const int id = mn_env_find("tmaze");
  mn_vec *on = mn_vec_new(there, id, B, 1, NULL, NULL, LIMIT), *cpu = mn_vec_new(mn, id, B, 1, NULL, NULL, LIMIT);
  mn_rollout r = {};
  float *x = (float *)leaf(MN_F32, 3 * B * N), *reward = (float *)leaf(MN_F32, 2 * B);
  uint8_t *done = (uint8_t *)leaf(MN_U8, 3 * B);
  int32_t *action = (int32_t *)leaf(MN_I32, B);
  r.obs = x, r.done = done, r.reward = reward, r.resets = (uint8_t *)leaf(MN_U8, 3 * B);
  r.played = (int32_t *)leaf(MN_I32, 2 * B), r.length = (int32_t *)leaf(MN_I32, 2 * B);
  r.score = (float *)leaf(MN_F32, 2 * B), r.ret = (float *)leaf(MN_F32, 2 * B);
  r.terminated = (uint8_t *)leaf(MN_U8, B), r.cut = (uint8_t *)leaf(MN_U8, B);
  r.seen = (int32_t *)leaf(MN_I32, B);
  std::vector<float> obs(B * N), paid(B);
  std::vector<uint8_t> terminated(B), truncated(B);
  bool same = on && cpu && r.seen && !mn_vec_reset(on, 1, x) && !mn_vec_reset(cpu, 1, obs.data());
  if (same) same = mn_vec_roll(on, &r, 0, action) >= 0 && !mn_vec_rolled(on);      /* a first one, which waits */
  if (same) same = !mn_vec_step(cpu, action, obs.data(), paid.data(), terminated.data(), truncated.data());
  void *graph = NULL;
  if (same) {
    device->capture();
    same = mn_vec_roll(on, &r, 1, action) >= 0;
    void *memory = NULL;
    expect("nobody waits while a graph is made", device->wait() && strstr(device->error(), "waiting while a graph is made"));
    expect("nor takes memory", !(memory = device->alloc(4)) && strstr(device->error(), "taking memory while a graph is made"));
    graph = device->captured();
  }
  expect("a step of an environment is kept as a graph", graph && same, device->error());
  for (int k = 0; graph && same && k < 2 * LIMIT + 1; k++) {
    for (int i = 0; i < B; i++) action[i] = (i + k) % 4;
    device->launch(graph);
    same = !mn_vec_rolled(on) &&
           !mn_vec_step(cpu, action, obs.data(), paid.data(), terminated.data(), truncated.data()) &&
           !memcmp(x + 2 * B * N, obs.data(), sizeof(float) * B * N) && !memcmp(reward + B, paid.data(), sizeof(float) * B);
    for (int i = 0; i < B && same; i++) same = done[2 * B + i] == (terminated[(size_t)i] | truncated[(size_t)i]);
  }
  expect("and each replay is the CPU's next step", same);
  if (graph) device->forget(graph);
  mn_vec_free(on);
  mn_vec_free(cpu);
  mn_ctx_free(there);
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: test_gpu_kernels emu|cuda\n"), 2;
  if (mn_device_open(NULL, argv[1], &device) || !(mn = mn_ctx_new("cpu", 1)))
    return fprintf(stderr, "%s\n", mn_error(NULL)), 1;
  agalite("code", 2, 1, { 18, 2, 3, 16, 4, 16 }, "outer gate", true, 0);
  agalite("code", 7, 4, { 5, 2, 1, 5, 3, 7 }, "outer gate", true, 40);
  agalite("code", 1, 1, { 4, 1, 2, 33, 5, 130 }, "outer gate", true, 16777000);
  agalite("paper", 3, 2, { 5, 3, 2, 4, 2, 5 }, "elementwise gate", true, 7);
  agalite("cossin", 4, 4, { 5, 2, 2, 6, 1, 3 }, "no gate", false, 3);
  agalite("cossin", 5, 5, { 5, 2, 2, 6, 2, 17 }, "outer gate", true, 3, false);
  agalite("code", 3, 2, { 5, 1, 2, 4, 2, 4 }, "elementwise gate", false, 0, true, 20.0);

  replay(argv[1]);

  const mn_op nothing = {};
  mn_op_entry unknown = {};
  unknown.name = "unknown";
  unknown.op = &nothing;
  bool found = mn_device_kernel(NULL, device, &unknown, false);
  expect("an op without a kernel is an error that names it",
         !found && strstr(mn_error(NULL), "unknown: has no kernel for device="), mn_error(NULL));
  found = device->alloc((size_t)1 << 60);
  expect("too much memory is an error", !found && strstr(device->error(), "memory"), device->error());
  mn_ctx_free(mn);
  return finish();
}
