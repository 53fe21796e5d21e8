/* control_group.h -- the limits of the process's control group, which containers and batch systems set; INFINITY: none. */
#ifndef MN_CONTROL_GROUP_H
#define MN_CONTROL_GROUP_H

double mn_group_memory(void);          /* bytes */
double mn_group_processors(void);      /* processors' worth of time, 1.5 for instance */

#endif
