/* tmaze_passive.c -- the cue is in the first observation: remember it along the corridor (worlds/tmaze_oracle.h). */
#include "worlds/tmaze_oracle.h"

ORACLE_ENV(tmaze_passive, 0,
           "The first screen has an arrow, up or down: walk right without a stop and turn that way at the end, for +1 when time is up; "
           "each step behind that way costs 1 / corridor.",
           "remember a cue along a corridor; only the end of the time pays (Ni et al. 2023)")
