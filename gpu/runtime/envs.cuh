/* envs.cuh -- an environment on the device.  The Makefile compiles each engine/envs/X.c again, as
** CUDA and with this file in front, so there is one source of the rules, and no list.  Here MN_ENV defines, instead of
** loops over environments, one kernel with a thread per environment.  It does a step with
** all that follows: time limits, new episodes, the rows of a learner's rollout.
** Same bits as on the CPU: only explicit multiply-adds are fused. */
#pragma once
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kernel.cuh"
extern "C" {
#include "sim/vec_arrays.h"
}

namespace envs {

constexpr unsigned THREADS = 64;  /* few: thousands of environments are to fill all multiprocessors */

/* Row by row of 8 bytes, all threads of a block for all of its environments. */
static __device__ void keep_before(const mn_vec_arrays &v) {
  const size_t first = (size_t)blockIdx.x * THREADS, left = (size_t)v.n - first;
  const size_t at = first * v.stride / 8, words = (left < THREADS ? left : THREADS) * v.stride / 8;
  const uint64_t *from = (const uint64_t *)(const void *)v.self + at;
  uint64_t *to = (uint64_t *)(void *)v.before + at;
  for (size_t i = threadIdx.x; i < words; i += THREADS) to[i] = from[i];
  __syncthreads();
}

static __device__ mn_io io_of(const mn_vec_arrays &v, int i, uint32_t purpose, char *obs) {
  mn_io io = mn_io_at(&v.streams[i / MN_ENVS_PER_BATCH], i % MN_ENVS_PER_BATCH, purpose, v.param, v.shared, obs);
  mn_philox(io.key, io.bits);
  return io;
}

template <class Self, void (*reset)(Self *, mn_io *), void (*step)(Self *, mn_io *)>
CU_KERNEL env_step(const mn_vec_arrays &v, const mn_step_io &to) {
  const int i = (int)(blockIdx.x * THREADS + threadIdx.x);
  if (to.action) keep_before(v);
  if (i >= v.n) return;
  Self *self = (Self *)(void *)(v.self + (size_t)i * v.stride);
  char *obs = to.obs + (size_t)i * v.obs_bytes;
  bool over = !to.action;
  if (to.action) {
    const char *action = (const char *)to.action + mn_action_bytes(&v.actions, i);
    for (int k = 0; k < v.actions.size; k++)
      if (!mn_action_fits(&v.actions, action, k)) {
        *v.wrong = i + 1;        /* of several, any one */
        return;
      }
    mn_io io = io_of(v, i, MN_FOR_STEP, obs);
    if (v.did) {
      mn_action_take(&v, i, action);
      io.choices = v.did + mn_action_words(&v.actions, i);
    } else io.action = v.last[i] = *(const int32_t *)action;
    step(self, &io);
    const bool cut = mn_env_count_step(&v.length[i], &v.sum[i], v.time_limit, io.reward, io.terminated);
    over = io.terminated || cut;
    v.changed[i] = 0;
    v.score[i] = io.score;
    to.reward[i] = io.reward;
    to.terminated[i] = io.terminated;
    to.truncated[i] = cut;
    if (over) mn_env_end_episode(&v, i, obs);
    if (to.rollout.obs) {
      mn_outcome o = { action, io.reward, io.terminated, cut, obs, v.obs_bytes, io.score, (float)v.sum[i], v.length[i] };
      mn_rollout_note(&to.rollout, v.n, to.t, i, &o);
    }
  }
  if (over) {
    mn_env_clear(&v, i);
    mn_io io = io_of(v, i, MN_FOR_RESET, obs);
    reset(self, &io);
  }
  mn_stream_advance(&v.streams[i / MN_ENVS_PER_BATCH], i % MN_ENVS_PER_BATCH);
}

}  // namespace envs

#undef MN_ENV
#define MN_ENV(NAME, ...)                                                                          \
  static constexpr auto mn_##NAME##_is() {                                                         \
    struct {                                                                                       \
      MN_ENV_FACTS                                                                                   \
      void (*reset)(NAME *self, mn_io *io);                                                          \
      void (*step)(NAME *self, mn_io *io);                                                           \
      void (*draw)(const NAME *self, const mn_io *io, mn_canvas *c);                                 \
      int  (*truth)(const NAME *self, const mn_io *io, const char **names, float *values);           \
      bool (*valid)(const NAME *self, const mn_io *io);                                              \
      bool (*set)(NAME *self, const mn_io *io, int fact, double value);                              \
      void (*observe)(NAME *self, mn_io *io);                                                        \
      void (*outcome)(const NAME *self, uint8_t *reached);                                           \
    } is = { __VA_ARGS__ };                                                                        \
    return is;                                                                                     \
  }                                                                                                \
  static void mn_##NAME##_run(const mn_vec_arrays *all, const mn_step_io *to) {                          \
    CU_LAUNCH((envs::env_step<NAME, mn_##NAME##_is().reset, mn_##NAME##_is().step>),               \
              ((unsigned)all->n + envs::THREADS - 1) / envs::THREADS, envs::THREADS, 0, *all, *to); \
  }                                                                                                \
  extern "C" {                                                                                     \
  extern const mn_env_kernel mn_env_kernel_##NAME;                                                 \
  const mn_env_kernel mn_env_kernel_##NAME = { sizeof(mn_vec_arrays), sizeof(mn_step_io), mn_##NAME##_run }; \
  }
