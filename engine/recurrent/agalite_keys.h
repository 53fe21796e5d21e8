/* agalite_keys.h -- the key vectors of agalite, carried from token to token, each with its own weight.
** For M weighted vectors and one more of weight 1:  x_m = decay * x_m + w_m * write, and the product of each with q.
**
** A token's q, write and decay are given as factors.  Their outer products, K values each, are
** computed lane by lane where they are used, which takes less time than storing and reading them.  The vectors are
** packed: values used together are stored together. */
#ifndef MN_AGALITE_KEYS_H
#define MN_AGALITE_KEYS_H
#include "galite_decay.h"

/* A token's factors, index e*D + d: q = p[e,0] q[d], write = p[e,1] write[d], decay = keep - p[e,2] forget[d].  D is a
** multiple of 16, and E*D is Kp. */
typedef struct mn_key_factors {
  int E, D;
  float keep;
  const float *q, *write, *forget, *p;
} mn_key_factors;

/* f: the factors of a token, as the inputs are given where D allows, else with E = 1; some are the op's inputs, the
** others lie in room, mn_factor_room floats that must stay as long as they are used. */
void mn_factor_keys(const mn_attention *a, long token, float keep, float *room, mn_key_factors *f);
long mn_factor_room(const mn_attention *a);

/* Vectors of Kp numbers: the weighted ones, stride apart, and the last of weight 1.  NULL: zeros, or not asked for. */
typedef struct mn_key_vectors { float *weighted, *last; long stride; } mn_key_vectors;

/* To and from the packed order. */
void mn_pack_keys(const mn_attention *a, int M, mn_key_vectors from, float *packed);
void mn_unpack_keys(const mn_attention *a, int M, const float *packed, mn_key_vectors to);

/* One token: packed vectors from -> to (which may be the same).  Their products with q are left as
** lanes[M+1,MN_LANES], to be added up by mn_add_lanes. */
void mn_carry_keys(const mn_key_factors *f, int M, const float *w, const float *from, float *to, float *lanes);

/* One token backward, from the gradients dproduct[M+1]: dx, packed, goes from after it to before it, and the gradients
** of the inputs are written.  work: mn_carry_room floats. */
void mn_carry_keys_back(const mn_attention *a, long token, float keep, const mn_key_factors *f, int M, const float *w,
                        const float *dproduct, const float *before, const float *after, float *dx, float *work);
long mn_carry_room(const mn_attention *a);

/* out[i] = the sum of lanes[i,MN_LANES], i < n.  Both have room for n rounded up to a multiple of 16. */
void mn_add_lanes(long n, const float *lanes, float *out);

#endif
