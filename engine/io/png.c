/* png.c -- reads and writes PNG images through libpng's simplified interface, in memory: only file.c
** touches files. */
#include "op.h"
#include <png.h>
#include <stdlib.h>
#include <string.h>

/* Write a picture, RGBA8 rows from the top, as a PNG file without its alpha. */
int mn_image_write(mn_ctx *mn, const char *path, const uint8_t *rgba, int width, int height) {
  if (width < 1 || height < 1 || width > 16384 || height > 16384)
    return mn_fail(mn, "%s: size is %dx%d, expected 1x1 .. 16384x16384", path, width, height);
  png_image image = { .version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB,
                      .width = (png_uint_32)width, .height = (png_uint_32)height };
  size_t n = (size_t)width * (size_t)height;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  uint8_t *rgb = malloc(n * 3), *file = malloc(bytes);
  int bad;
  if (!rgb || !file) {
    bad = mn_fail(mn, "%s: no memory", path);
  } else {
    for (size_t i = 0; i < n; i++) memcpy(rgb + 3 * i, rgba + 4 * i, 3);
    if (png_image_write_to_memory(&image, file, &bytes, 0, rgb, 0, NULL))
      bad = mn_file_write(mn, path, 1, (const void *const[]){ file }, &(double){ (double)bytes });
    else bad = mn_fail(mn, "%s: %s", path, image.message);
  }
  free(rgb), free(file);
  return bad;
}

/* Read a PNG file.  rgba NULL: only its size.  Otherwise width and height say what rgba has room for. */
int mn_image_read(mn_ctx *mn, const char *path, uint8_t *rgba, int *width, int *height) {
  mn_file *file = mn_file_new(mn, path);
  if (!file) return -1;
  png_image image = { .version = PNG_IMAGE_VERSION };
  int bad = 0;
  if (!png_image_begin_read_from_memory(&image, mn_file_data(file), (size_t)mn_file_bytes(file))) {
    bad = mn_fail(mn, "%s: %s", path, image.message);
  } else if (!rgba) {
    *width = (int)image.width, *height = (int)image.height;
  } else if ((int)image.width != *width || (int)image.height != *height) {
    bad = mn_fail(mn, "%s is %ux%u, expected %dx%d", path, image.width, image.height, *width, *height);
  } else {
    image.format = PNG_FORMAT_RGBA;
    if (!png_image_finish_read(&image, NULL, rgba, 0, NULL)) bad = mn_fail(mn, "%s: %s", path, image.message);
  }
  png_image_free(&image);
  mn_file_free(file);
  return bad;
}
