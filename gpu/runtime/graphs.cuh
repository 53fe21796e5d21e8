/* graphs.cuh -- work that is captured once and launched many times; failures on the host's side. */
#pragma once
#include "kernel.cuh"

bool cu_failure(char *why, size_t n);  /* has work failed on the host's side since the last call?  Then it is forgotten */

struct cu_graph;
void cu_graph_begin();                 /* work that follows is captured, not run */
bool cu_in_graph();
cu_graph *cu_graph_end();              /* NULL: it failed, and cu_failure says why */
void cu_graph_launch(cu_graph *g);
void cu_graph_free(cu_graph *g);

/* The bytes of the host, kept until the graph that is being captured is freed. */
const void *cu_graph_keep(const void *host, size_t bytes);
