/* window.c -- a window that shows pixels and collects keys.  The only file that includes SDL: pictures
** are painted by raster.c, so a window is nothing but a texture of that size, copied without scaling. */
#include "op.h"
#include "view.h"
#include <SDL.h>
#include <stdlib.h>
#include <string.h>

struct mn_window {
  mn_ctx *ctx;
  SDL_Window *window;
  SDL_Renderer *renderer;
  SDL_Texture *texture;
  int width, height;                            /* of the texture */
};

/* Open a window of width x height pixels, which the user may resize. */
mn_window *mn_window_new(mn_ctx *mn, const char *title, int width, int height) {
  mn_window *w = calloc(1, sizeof *w);
  if (!w) { mn_fail(mn, "window: no memory"); return NULL; }
  w->ctx = mn;
  SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
  bool ready = !SDL_Init(SDL_INIT_VIDEO);
  /* without a display SDL takes a driver that shows nothing; only who asks for one by name wants that */
  const char *driver = ready ? SDL_GetCurrentVideoDriver() : NULL;
  if (driver && !getenv("SDL_VIDEODRIVER") && (!strcmp(driver, "offscreen") || !strcmp(driver, "dummy"))) {
    SDL_SetError("no window system answers");
    ready = false;
  }
  if (ready) w->window = SDL_CreateWindow(title, SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED,
                                          width, height, SDL_WINDOW_RESIZABLE);
  if (w->window) w->renderer = SDL_CreateRenderer(w->window, -1, 0);
  if (!w->renderer) {
    mn_fail(mn, "window: no display (%s)", SDL_GetError());
    mn_window_free(w);
    return NULL;
  }
  SDL_SetWindowMinimumSize(w->window, 640, 480);
  return w;
}

void mn_window_free(mn_window *w) {
  if (!w) return;
  if (w->texture) SDL_DestroyTexture(w->texture);
  if (w->renderer) SDL_DestroyRenderer(w->renderer);
  if (w->window) SDL_DestroyWindow(w->window);
  SDL_QuitSubSystem(SDL_INIT_VIDEO);
  free(w);
}

static int key_of(SDL_Keycode sym) {
  switch (sym) {
  case SDLK_LEFT: return MN_KEY_LEFT;
  case SDLK_RIGHT: return MN_KEY_RIGHT;
  case SDLK_UP: return MN_KEY_UP;
  case SDLK_DOWN: return MN_KEY_DOWN;
  case SDLK_EQUALS: case SDLK_KP_PLUS: return '+';         /* + without shift */
  case SDLK_KP_MINUS: return '-';
  default: return sym > 0 && sym < 128 ? sym : 0;
  }
}

/* The next thing the user did, if any; what a viewer has no use for is dropped here. */
int mn_window_poll(mn_window *w, mn_event *event) {
  SDL_Event e;
  (void)w;
  while (SDL_PollEvent(&e)) {
    *event = (mn_event){ 0, 0, 0, 0 };
    if (e.type == SDL_QUIT) {
      event->kind = MN_EVENT_QUIT;
    } else if (e.type == SDL_KEYDOWN && key_of(e.key.keysym.sym)) {
      event->kind = MN_EVENT_KEY, event->key = key_of(e.key.keysym.sym);
    } else if (e.type == SDL_MOUSEBUTTONDOWN) {
      event->kind = MN_EVENT_MOUSE, event->key = e.button.button;
      event->x = e.button.x, event->y = e.button.y;
    } else if (e.type == SDL_WINDOWEVENT && e.window.event == SDL_WINDOWEVENT_SIZE_CHANGED) {
      event->kind = MN_EVENT_RESIZE, event->x = e.window.data1, event->y = e.window.data2;
    } else if (e.type == SDL_WINDOWEVENT && e.window.event == SDL_WINDOWEVENT_EXPOSED) {
      event->kind = MN_EVENT_EXPOSE;
    }
    if (event->kind) return 1;
  }
  return 0;
}

void mn_window_wait(mn_window *w, double seconds) {
  (void)w;
  if (seconds > 0) SDL_WaitEventTimeout(NULL, (int)(seconds * 1000 + 0.5));
}

int mn_window_size(mn_window *w, int *size) {
  if (SDL_GetRendererOutputSize(w->renderer, &size[0], &size[1]))
    return mn_fail(w->ctx, "window: %s", SDL_GetError());
  return 0;
}

/* Copy a picture into the window; it is shown pixel by pixel from the upper left corner. */
int mn_window_show(mn_window *w, const uint8_t *rgba, int width, int height) {
  if (!w->texture || w->width != width || w->height != height) {
    if (w->texture) SDL_DestroyTexture(w->texture);
    w->texture = SDL_CreateTexture(w->renderer, SDL_PIXELFORMAT_RGBA32, SDL_TEXTUREACCESS_STREAMING,
                                   width, height);
    if (w->texture) SDL_SetTextureBlendMode(w->texture, SDL_BLENDMODE_NONE);
    w->width = width, w->height = height;
  }
  SDL_Rect place = { 0, 0, width, height };
  if (!w->texture || SDL_UpdateTexture(w->texture, NULL, rgba, width * 4) || SDL_RenderClear(w->renderer) ||
      SDL_RenderCopy(w->renderer, w->texture, NULL, &place))
    return mn_fail(w->ctx, "window: a picture of %dx%d cannot be shown (%s)", width, height, SDL_GetError());
  SDL_RenderPresent(w->renderer);
  return 0;
}

/* Read the shown pixels back, as RGBA8 rows from the top; the size must be the shown picture's. */
int mn_window_read(mn_window *w, uint8_t *rgba, int width, int height) {
  if (!w->texture || width != w->width || height != w->height)
    return mn_fail(w->ctx, "window: reading %dx%d, but %dx%d is shown", width, height, w->width, w->height);
  SDL_Rect place = { 0, 0, width, height };
  if (SDL_RenderCopy(w->renderer, w->texture, NULL, &place) ||
      SDL_RenderReadPixels(w->renderer, &place, SDL_PIXELFORMAT_RGBA32, rgba, width * 4))
    return mn_fail(w->ctx, "window: cannot be read back (%s)", SDL_GetError());
  return 0;
}

void mn_window_title(mn_window *w, const char *title) { SDL_SetWindowTitle(w->window, title); }
