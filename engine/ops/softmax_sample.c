/* softmax_sample.c -- draws an action from softmax(logits) for every row and environment.
** The draw of environment b at time t is a function of (seed, b, clock + t): it has no state but the clock, and is the same for
** any number of environments or threads.  greedy=1 takes the largest logit.  `first` is the index of the first environment
** here, if other processes step those before it; `place` says which number each has instead of its index. */
#include "numerics/random.h"
#include "policy.h"

static int largest(const float *logit, int A) {
  int best = 0;
  for (int a = 1; a < A; a++) if (logit[a] > logit[best]) best = a;
  return best;
}

static void forward(mn_call *c) {
  int T = DIM(c, 'T'), B = DIM(c, 'B'), A = DIM(c, 'A'), first = (int)OPT(c, 1);
  const int32_t *clock = c->in[1].i32;               /* seed, then the time of row 0 as low and high 31 bits */
  const int32_t *place = c->in[2].i32;
  for (int t = 0; t < T; t++)
    for (int b = 0; b < B; b++) {
      const float *logit = c->in[0].data + ((long)t * B + b) * A;
      uint64_t time = (uint64_t)clock[1] + ((uint64_t)clock[2] << 31) + (uint64_t)(c->t0 + t);
      uint32_t counter[6] = { (uint32_t)clock[0], 0, (uint32_t)(first + (place ? place[b] : b)), (uint32_t)time, (uint32_t)(time >> 32), MN_FOR_ACTION };
      uint32_t bits[4];
      mn_philox(counter, bits);
      float u = (float)(bits[0] >> 8) * 0x1p-24f;
      c->out[0].i32[t * B + b] = OPT(c, 0) != 0 ? largest(logit, A) : mn_drawn(logit, A, u);
    }
}

const mn_op mn_op_softmax_sample = {
  .sig = "logits[T,B,A] clock[3]:i32 place?[B]:i32 -> action[T,B]:i32 | greedy=0 first=0",
  .doc = "action ~ softmax(logits), from a counter-based generator. The counter is (seed, environment, time); clock = seed, time low, time high; "
      "first: the index of the first environment; place: the number of each, in place of its index",
  .time = MN_PER_ROW, .forward = forward,
};
