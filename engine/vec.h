/* vec.h -- what engine/env.c gives to engine/vec.c; nobody else includes it. */
#ifndef MN_VEC_H
#define MN_VEC_H
#include "env.h"

const mn_env *mn_env_at(int env);                 /* NULL: no such number */

/* Fill value[MN_PARAMS] from `given`, one for each of the environment's parameters (NULL: the
** defaults).  Their count; or -1, naming the parameter, the value and the range. */
int mn_env_values(mn_ctx *mn, const mn_env *e, const double *given, double *value);

/* The number of a settable fact, its value checked; or -1, naming what there is. */
int mn_env_fact(mn_ctx *mn, const mn_env *e, const char *name, double value);

/* The i-th word of a list parted by blanks, in buf; "?" where there is none. */
const char *mn_word(const char *list, int i, char *buf, int size);

/* 0 if every action is one of 0 .. n-1; else the first that is not is the error. */
int mn_env_actions_fit(mn_ctx *mn, const mn_env *e, int n, const int32_t *action, int copies);

#endif
