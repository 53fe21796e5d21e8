/* error.h -- where a context keeps its last error. */
#ifndef MN_ERROR_H
#define MN_ERROR_H

/* A context begins with this, so that errors can be written without knowing the rest of it. */
typedef struct mn_error_text { char text[512]; } mn_error_text;

#endif
