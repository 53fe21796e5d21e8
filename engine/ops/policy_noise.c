/* policy_noise.c -- random numbers with which policies draw their actions, for every row and environment.
** Those of environment b at time t are a function of (seed, b, clock + t, stream): see softmax_sample.  Number k of a row has word k % 4 of
** block k / 4; normal ones come in pairs (Box and Muller 1958). */
#include "numerics/random.h"
#include "numerics/fast_math.h"
#include "op.h"

static void forward(mn_call *c) {
  const int T = DIM(c, 'T'), B = DIM(c, 'B'), K = DIM(c, 'K'), first = (int)OPT(c, 1), stream = (int)OPT(c, 2);
  const int32_t *clock = c->in[1].i32;               /* seed, then the time of row 0 as low and high 31 bits */
  const int32_t *place = c->in[2].i32;
  for (int t = 0; t < T; t++)
    for (int b = 0; b < B; b++) {
      float *z = c->out[0].data + ((long)t * B + b) * K;
      const uint64_t time = (uint64_t)clock[1] + ((uint64_t)clock[2] << 31) + (uint64_t)(c->t0 + t);
      for (int k = 0; k < K; k += 4) {
        uint32_t counter[6] = { (uint32_t)clock[0], (uint32_t)(stream << 16 | k / 4), (uint32_t)(first + (place ? place[b] : b)), (uint32_t)time,
                                (uint32_t)(time >> 32), MN_FOR_ACTION };
        uint32_t bits[4];
        float four[4];
        mn_philox(counter, bits);
        for (int i = 0; i < 4; i++) four[i] = (float)(bits[i] >> 8) * 0x1p-24f;
        if (OPT(c, 0) == 0) mn_normals(bits[0], bits[1], &four[0], &four[1]), mn_normals(bits[2], bits[3], &four[2], &four[3]);
        for (int i = 0; i < 4 && k + i < K; i++) z[k + i] = four[i];
      }
    }
}

const mn_op mn_op_policy_noise = {
  .sig = "like[T,B,K] clock[3]:i32 place?[B]:i32 -> ~z[T,B,K] | uniform=0 first=0 stream=1",
  .doc = "z standard normal (uniform=1: uniform in [0, 1)), with which a policy draws, from a counter-based generator. The counter is (seed, "
      "environment, time, stream); clock = seed, time low, time high; first: the index of the first environment; place: the number of each, in "
      "place of its index",
  .time = MN_PER_ROW, .forward = forward,
};
