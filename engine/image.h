/* image.h -- what image.c, gif.c and movie.c share: a picture file appears whole under its name, or not
** at all, so an interrupted or failed writing never damages the file that was there before. */
#ifndef MN_IMAGE_H
#define MN_IMAGE_H
#include "mneme.h"
#include <stdio.h>

/* A file being written beside its place. */
typedef struct mn_draft {
  mn_ctx *ctx;
  FILE *file;                  /* NULL: somebody else writes it (ffmpeg) */
  char *path, *temporary;
} mn_draft;

int  mn_draft_open(mn_ctx *mn, mn_draft *d, const char *path, bool open_file);
int  mn_draft_keep(mn_draft *d);       /* flush, rename; -1 with the error set if it cannot */
void mn_draft_drop(mn_draft *d);       /* remove what was written; harmless after keep */

/* Colours of a picture, at most 256 of them, and which one each pixel takes. */
int mn_quantise(const uint8_t *rgba, int width, int height, uint8_t palette[256][3], uint8_t *index);

typedef struct mn_gif mn_gif;
mn_gif *mn_gif_new(mn_ctx *mn, FILE *file, int width, int height, int fps);
int     mn_gif_add(mn_gif *g, const uint8_t *rgba);
int     mn_gif_end(mn_gif *g);         /* frees it; -1 with the error set if the file is not whole */
#endif
