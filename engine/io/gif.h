/* gif.h -- what movie.c needs from gif.c. */
#ifndef MN_GIF_H
#define MN_GIF_H
#include "mneme.h"

typedef struct mn_gif mn_gif;
mn_gif *mn_gif_new(mn_ctx *mn, int width, int height, int fps);
void    mn_gif_free(mn_gif *g);
int     mn_gif_add(mn_gif *g, const uint8_t *rgba);
int     mn_gif_end(mn_gif *g, const char *path);      /* write the file */
#endif
