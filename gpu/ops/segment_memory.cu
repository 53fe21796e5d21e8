/* segment_memory.cu -- memory_push memory_push_mask memory_read frame_stack: memories of the last rows. */
#include "runtime/kernel.cuh"

/* ---- remember: slot m holds row m + t1 - M of x [T,B,L*D] or, before the first, slot m + t1 of memory [L,M,B,D] ---- */

struct Sizes { long L, M, B, D; cu_divisor by_m, by_b, by_l, by_d; };

static Sizes sizes_of(const mn_call *c) {
  const long L = DIM(c, 'L'), M = DIM(c, 'M'), B = DIM(c, 'B'), D = DIM(c, 'D');
  return { L, M, B, D, cu_divisor(M), cu_divisor(B), cu_divisor(L), cu_divisor(D) };
}

CU_KERNEL remember_rows(const float *x, const float *memory, float *to, long n, const Sizes &s, long rows) {
  CU_LOOP(i, n) {
    long d, b, m;
    const long l = s.by_m.divide(s.by_b.divide(s.by_d.divide(i, &d), &b), &m), t = m + rows - s.M;
    to[i] = t >= 0 ? x[((t * s.B + b) * s.L + l) * s.D + d] : memory[((l * s.M + m + rows) * s.B + b) * s.D + d];
  }
}

/* Each number of x and of memory gets the gradient of the slot that holds it, or 0. */
CU_KERNEL remember_back(const float *dy, float *dx, long x_n, float *dmemory, long memory_n, const Sizes &s,
                        long rows, bool stop) {
  if (dx) CU_LOOP(i, x_n) {
    long d, l, b;
    const long t = s.by_b.divide(s.by_l.divide(s.by_d.divide(i, &d), &l), &b), m = t + s.M - rows;
    dx[i] = stop || m < 0 ? 0.0f : dy[((l * s.M + m) * s.B + b) * s.D + d];
  }
  if (dmemory) CU_LOOP(i, memory_n) {
    long d, b, m;
    const long l = s.by_m.divide(s.by_b.divide(s.by_d.divide(i, &d), &b), &m);
    dmemory[i] = stop || m < rows ? 0.0f : dy[((l * s.M + m - rows) * s.B + b) * s.D + d];
  }
}

static void remember_forward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(remember_rows, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].data, c->out[0].data, n,
            sizes_of(c), (long)c->t1);
}

static void remember_backward(mn_call *c) {
  CU_LAUNCH(remember_back, cu_blocks(cu_max(c->in[0].n, c->in[1].n)), CU_THREADS, 0, c->out[0].grad,
            c->in[0].grad, c->in[0].n, c->in[1].grad, c->in[1].n, sizes_of(c), (long)DIM(c, 'T'), OPT(c, 0) != 0);
}

MN_KERNEL(memory_push, remember_forward, remember_backward)

/* ---- memory_push_mask: a block has ENVS environments, and several threads of each find its last reset ---- */

enum { ENVS = 32, LANES = CU_THREADS / ENVS };

CU_KERNEL block_slots(const float *mask, const uint8_t *done, float *to, int M, int B, int rows) {
  const int env = (int)threadIdx.x % ENVS, lane = (int)threadIdx.x / ENVS;
  const long b = (long)blockIdx.x * ENVS + env;
  cu_smem<int> last = CU_SHARED(int, 0);
  int from = -1;
  for (int t = lane; done && b < B && t < rows; t += LANES) if (done[(long)t * B + b]) from = t;
  last[(int)threadIdx.x] = from;
  __syncthreads();
  for (int l = 0; l < LANES; l++) from = cu_max(from, (int)last[l * ENVS + env]);
  for (int m = lane; b < B && m < M; m += LANES) {
    const int t = m + rows - M;
    to[m * (long)B + b] = t >= 0 ? (float)(t < from) : from >= 0 ? 1.0f : mask[(long)(m + rows) * B + b];
  }
}

static void remember_mask_forward(mn_call *c) {
  const int B = DIM(c, 'B');
  CU_LAUNCH(block_slots, (unsigned)cu_parts(B, ENVS), CU_THREADS, CU_THREADS * sizeof(int), c->in[1].data,
            c->in[2].u8, c->out[0].data, DIM(c, 'M'), B, c->t1);
}

MN_KERNEL(memory_push_mask, remember_mask_forward, NULL)

/* ---- recall: one level of a memory, zeros where a slot is blocked or an episode begins ---- */

static __device__ bool open_slot(const uint8_t *done, const float *mask, long slot, long b) {
  return mask[slot] == 0 && !(done && done[b]);
}

CU_KERNEL recall_level(const uint8_t *done, const float *mask, const float *from, float *y, long n,
                       cu_divisor B, cu_divisor D) {
  CU_LOOP(i, n) {
    long d, b;
    const long slot = D.divide(i, &d);
    B.divide(slot, &b);
    y[i] = open_slot(done, mask, slot, b) ? from[i] : 0.0f;
  }
}

/* dmemory of all levels, or added to that of the one; `first` is where the level begins. */
CU_KERNEL recall_back(const uint8_t *done, const float *mask, const float *dy, float *to, long from, long n,
                      long first, long level_n, cu_divisor B, cu_divisor D, bool add) {
  CU_LOOP(k, n) {
    const long at = from + k, i = at - first;
    float x = 0;
    if (i >= 0 && i < level_n) {
      long d, b;
      const long slot = D.divide(i, &d);
      B.divide(slot, &b);
      if (open_slot(done, mask, slot, b)) x = dy[i];
    }
    to[at] = add ? to[at] + x : x;
  }
}

static void recall_forward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(recall_level, cu_blocks(n), CU_THREADS, 0, c->in[0].u8, c->in[2].data,
            c->in[1].data + (long)OPT(c, 0) * n, c->out[0].data, n, cu_divisor(DIM(c, 'B')), cu_divisor(DIM(c, 'D')));
}

static void recall_backward(mn_call *c) {
  const long level_n = c->out[0].n, first = (long)OPT(c, 0) * level_n;
  const bool add = mn_accumulates(c, 1);
  const long from = add ? first : 0, n = add ? level_n : c->in[1].n;
  if (!c->in[1].grad) return;
  CU_LAUNCH(recall_back, cu_blocks(n), CU_THREADS, 0, c->in[0].u8, c->in[2].data, c->out[0].grad,
            c->in[1].grad, from, n, first, level_n, cu_divisor(DIM(c, 'B')), cu_divisor(DIM(c, 'D')), add);
}

MN_KERNEL(memory_read, recall_forward, recall_backward)

/* ---- frame_stack: row t holds the frames t-F+1 .. t, as far as they are of its episode ---- */

struct Frames {
  const uint8_t *done;
  int F, T, B, D;
  cu_divisor by_f, by_b, by_d;
};

static Frames frames_of(const mn_call *c) {
  const int F = (int)OPT(c, 0), B = DIM(c, 'B'), D = DIM(c, 'D');
  return { c->in[1].u8, F, DIM(c, 'T'), B, D, cu_divisor(F), cu_divisor(B), cu_divisor(D) };
}

/* Number d of frame s of environment b as row t sees it; frames before row 0 are in past [B, F-1, D]. */
static __device__ float frame(const Frames &f, const float *x, const float *past, int t, int s, long b, long d) {
  for (int k = t; f.done && k > s && k >= 0; k--) if (f.done[(long)k * f.B + b]) return 0;
  if (s >= 0) return x[((long)s * f.B + b) * f.D + d];
  return past ? past[(b * (f.F - 1) + s + f.F - 1) * f.D + d] : 0.0f;
}

CU_KERNEL stack_frames(const Frames &f, const float *x, const float *past, float *y, float *last, int t0, int t1) {
  CU_LOOP(i, (long)(t1 - t0) * f.B * f.F * f.D) {
    long d, k, b;
    const int t = t0 + (int)f.by_b.divide(f.by_f.divide(f.by_d.divide(i, &d), &k), &b);
    const float v = frame(f, x, past, t, t - f.F + 1 + (int)k, b, d);
    y[(long)t0 * f.B * f.F * f.D + i] = v;
    if (t == t1 - 1 && k > 0) last[(b * (f.F - 1) + k - 1) * f.D + d] = v;
  }
}

/* Frame s, one of the past or of x, was seen by the rows s .. s+F-1 of its episode, and then by what follows. */
CU_KERNEL unstack_frames(const Frames &f, const float *dy, const float *dlast, float *dx, float *dpast) {
  const int old = f.F - 1;
  CU_LOOP(i, (long)(f.T + old) * f.B * f.D) {
    long d, b;
    const int s = (int)f.by_b.divide(f.by_d.divide(i, &d), &b) - old;
    float *to = s >= 0 ? dx : dpast;
    if (!to) continue;
    float sum = 0;
    int t = s < 0 ? 0 : s;
    for (; t < f.T && t - s < f.F; t++) {
      if (t > s && f.done && f.done[(long)t * f.B + b]) break;
      if (dy) sum += dy[(((long)t * f.B + b) * f.F + old - (t - s)) * f.D + d];
    }
    if (t == f.T && t - s <= old && dlast) sum += dlast[(b * old + old - (t - s)) * f.D + d];
    to[s >= 0 ? ((long)s * f.B + b) * f.D + d : (b * old + s + old) * f.D + d] = sum;
  }
}

static void frame_stack_forward(mn_call *c) {
  const Frames f = frames_of(c);
  CU_LAUNCH(stack_frames, cu_blocks((long)(c->t1 - c->t0) * f.B * f.F * f.D), CU_THREADS, 0, f,
            c->in[0].data, c->in[2].data, c->out[0].data, c->out[1].data, c->t0, c->t1);
}

static void frame_stack_backward(mn_call *c) {
  const Frames f = frames_of(c);
  CU_LAUNCH(unstack_frames, cu_blocks((long)(f.T + f.F - 1) * f.B * f.D), CU_THREADS, 0, f, c->out[0].grad,
            c->out[1].grad, c->in[0].grad, c->in[2].grad);
}

MN_KERNEL(frame_stack, frame_stack_forward, frame_stack_backward)
