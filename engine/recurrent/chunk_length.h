/* chunk_length.h -- how many tokens memories take at once, and keep a state for: on GPUs too. */
#ifndef MN_CHUNK_LENGTH_H
#define MN_CHUNK_LENGTH_H

enum { MN_CHUNK = 16 };          /* tokens of a chunk, and from one checkpoint of a state to the next; why: chunk.c */

#endif
