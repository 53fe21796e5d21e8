/* multi_seed.cuh -- work that is put off: in graphs, and where several seeds take turns (multi_seed.cu). */
#pragma once
#include "kernel.cuh"

void cu_turn_of(int seed);             /* work that follows is this seed's, 0 .. CU_SEEDS-1 */
void cu_catch_up();                    /* if the seed has put work off, what all of them have goes to the stream */
bool cu_failure(char *why, size_t n);  /* has the seed's work failed on the host's side?  Then it is forgotten */

struct cu_graph;
void cu_graph_begin(uint64_t name);    /* work that follows is not done but kept; seeds' graphs of one name are launched as one */
bool cu_in_graph();
cu_graph *cu_graph_end();
void cu_graph_launch(cu_graph *g);
void cu_graph_free(cu_graph *g);
