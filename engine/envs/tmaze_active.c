/* tmaze_active.c -- the cue is one step behind the start: fetch it first, then remember it along the corridor (worlds/tmaze_oracle.h). */
#include "worlds/tmaze_oracle.h"

ORACLE_ENV(tmaze_active, 1,
           "An arrow, up or down, is one step to the left: read it there, walk right without a stop and turn that way at the end, for +1 "
           "when time is up; each step behind that way costs 1 / corridor.",
           "fetch a cue, and remember it along a corridor; only the end of the time pays (Ni et al. 2023)")
