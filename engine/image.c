/* image.c -- pictures as PNG files, through libpng's simplified interface. */
#include "image.h"
#include "op.h"
#include <errno.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Begin a file that is to appear at `path`. */
int mn_draft_open(mn_ctx *mn, mn_draft *d, const char *path, bool open_file) {
  size_t length = strlen(path);
  *d = (mn_draft){ mn, NULL, malloc(length + 1), malloc(length + 5) };
  if (!d->path || !d->temporary) {
    mn_draft_drop(d);
    return mn_fail(mn, "%s: no memory", path);
  }
  memcpy(d->path, path, length + 1);
  memcpy(d->temporary, path, length);
  memcpy(d->temporary + length, ".tmp", 5);
  FILE *file = fopen(d->temporary, "wb");      /* also where ffmpeg writes: its own complaint would come late */
  if (!file) {
    mn_fail(mn, "%s cannot be written: %s", path, strerror(errno));
    free(d->path), free(d->temporary);
    d->path = d->temporary = NULL;
    return -1;
  }
  if (open_file) d->file = file;
  else fclose(file);
  return 0;
}

int mn_draft_keep(mn_draft *d) {
  int error = 0;
  if (d->file) {
    if (fflush(d->file) || fsync(fileno(d->file))) error = errno;
    if (fclose(d->file) && !error) error = errno;
    d->file = NULL;
  }
  if (!error && rename(d->temporary, d->path)) error = errno;
  if (error) {
    mn_fail(d->ctx, "%s cannot be written: %s", d->path, strerror(error));
    mn_draft_drop(d);
    return -1;
  }
  free(d->path), free(d->temporary);
  d->path = d->temporary = NULL;
  return 0;
}

void mn_draft_drop(mn_draft *d) {
  if (d->file) fclose(d->file);
  if (d->temporary) unlink(d->temporary);
  free(d->path), free(d->temporary);
  *d = (mn_draft){ d->ctx, NULL, NULL, NULL };
}

/* Write a picture, RGBA8 rows from the top, as a PNG file without its alpha. */
int mn_image_write(mn_ctx *mn, const char *path, const uint8_t *rgba, int width, int height) {
  if (width < 1 || height < 1 || width > 16384 || height > 16384)
    return mn_fail(mn, "%s: size is %dx%d, expected 1x1 .. 16384x16384", path, width, height);
  size_t n = (size_t)width * (size_t)height;
  mn_draft draft;
  if (mn_draft_open(mn, &draft, path, true)) return -1;
  uint8_t *rgb = malloc(n * 3);
  if (!rgb) {
    mn_draft_drop(&draft);
    return mn_fail(mn, "%s: no memory", path);
  }
  for (size_t i = 0; i < n; i++) memcpy(rgb + 3 * i, rgba + 4 * i, 3);
  png_image image = { .version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB,
                      .width = (png_uint_32)width, .height = (png_uint_32)height };
  errno = 0;
  int written = png_image_write_to_stdio(&image, draft.file, 0, rgb, 0, NULL);
  int error = errno;
  free(rgb);
  if (!written) {
    mn_fail(mn, "%s cannot be written: %s", path, error ? strerror(error) : image.message);
    mn_draft_drop(&draft);
    return -1;
  }
  return mn_draft_keep(&draft);
}

/* Read a PNG file.  rgba NULL: only its size.  Otherwise width and height say what rgba has room for. */
int mn_image_read(mn_ctx *mn, const char *path, uint8_t *rgba, int *width, int *height) {
  png_image image = { .version = PNG_IMAGE_VERSION };
  if (!png_image_begin_read_from_file(&image, path)) return mn_fail(mn, "%s: %s", path, image.message);
  if (!rgba) {
    *width = (int)image.width, *height = (int)image.height;
    png_image_free(&image);
    return 0;
  }
  if ((int)image.width != *width || (int)image.height != *height) {
    png_image_free(&image);
    return mn_fail(mn, "%s is %ux%u, expected %dx%d", path, image.width, image.height, *width, *height);
  }
  image.format = PNG_FORMAT_RGBA;
  if (!png_image_finish_read(&image, NULL, rgba, 0, NULL)) return mn_fail(mn, "%s: %s", path, image.message);
  return 0;
}
