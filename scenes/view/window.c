/* window.c -- a window that shows pixels and collects what keyboard, pointer and gamepads do.  The only file
** that includes SDL: pictures are painted by raster.c, so a window is nothing but a texture of that size,
** copied without scaling.  SDL is loaded when the first window opens, so pictures and videos need none. */
#include "op.h"
#include "view.h"
#include <SDL.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What of SDL is used. */
#define SDL_FUNCTIONS(F) \
  F(CreateRGBSurfaceWithFormatFrom) F(CreateRenderer) F(CreateTexture) F(CreateWindow) F(DestroyRenderer) F(DestroyTexture) F(DestroyWindow) \
  F(FreeSurface) F(GameControllerClose) F(GameControllerFromInstanceID) F(GameControllerGetAxis) F(GameControllerOpen) \
  F(GetCurrentVideoDriver) F(GetError) F(GetMouseState) F(GetRendererOutputSize) F(GetTicks) F(GetWindowFlags) F(GetWindowSize) \
  F(Init) F(InitSubSystem) F(PeepEvents) F(PollEvent) F(QuitSubSystem) F(RenderClear) F(RenderCopy) F(RenderPresent) \
  F(RenderReadPixels) F(SetError) F(SetHint) F(SetTextureBlendMode) F(SetWindowFullscreen) F(SetWindowIcon) F(SetWindowMinimumSize) F(ShowWindow) \
  F(StartTextInput) F(UpdateTexture) F(WaitEventTimeout)
#define POINTER(name) __typeof__(SDL_##name) *name;
static struct { SDL_FUNCTIONS(POINTER) } sdl;

/* SDL ends its own wait by a message to the window, sent over a connection of its own (SDL_x11events.c,
** X11_SendWakeupEvent); where it comes when the window is gone, the X server says so to Xlib, which ends the process. */
typedef struct x_error {                        /* XErrorEvent */
  int type;
  void *display;
  unsigned long resource, serial;
  unsigned char error, request, minor;
} x_error;
typedef int x_handler(void *display, x_error *e);
static x_handler *other_errors;

static int forgive_lost_message(void *display, x_error *e) {
  enum { BAD_WINDOW = 3, SEND_EVENT = 25 };
  return e->error == BAD_WINDOW && e->request == SEND_EVENT ? 0 : other_errors(display, e);
}

/* Before SDL's own handler, which calls this one, and which is gone when SDL closes that connection. */
static void watch_x_errors(void) {
  void *x = dlopen("libX11.so.6", RTLD_NOW | RTLD_LOCAL);               /* never closed; nor there, nor needed, on Wayland alone */
  x_handler *(*set_handler)(x_handler *) = x ? (__typeof__(set_handler))dlsym(x, "XSetErrorHandler") : NULL;
  if (set_handler) other_errors = set_handler(forgive_lost_message);
}

static bool load_sdl(mn_ctx *mn) {
  static void *library;
  if (library) return true;
  library = dlopen("libSDL2-2.0.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return mn_fail(mn, "window: SDL 2 is not installed (Debian: libsdl2-2.0-0), out=FILE needs none: %s", dlerror()), false;
#define FIND(name) if (!(sdl.name = (__typeof__(sdl.name))dlsym(library, "SDL_" #name))) goto old;
  SDL_FUNCTIONS(FIND)
  watch_x_errors();
  return true;
old:
  mn_fail(mn, "window: the installed SDL 2 is too old: %s", dlerror());
  dlclose(library);
  library = NULL;
  return false;
}

struct mn_window {
  mn_ctx *ctx;
  SDL_Window *window;
  SDL_Renderer *renderer;
  SDL_Texture *texture;
  int width, height;                            /* of the texture */
  bool pads;                                    /* gamepads are looked for */
  int held;                                     /* the direction that a gamepad holds, MN_KEY_*; or 0 */
  bool by_stick;                                /* its stick does, not its d-pad */
  SDL_JoystickID holder;
  Uint32 due;                                   /* when the held direction counts as pushed again, in ms */
};

/* A stick moves once it is half out, and has moved back at a third: where it rests it says nothing. */
enum { STICK_OUT = 16000, STICK_BACK = 10000, FIRST_REPEAT = 400, NEXT_REPEAT = 150 };

/* The icon: a map of a memory, rows of heads by steps, of which one holds something to the end. */
static void set_icon(SDL_Window *window) {
  enum { SIDE = 64, CELLS = 6, EDGE = 5, CELL = (SIDE - 2 * EDGE) / CELLS };
  static const unsigned char bright[CELLS][CELLS] = { { 1, 0, 0, 0, 0, 0 }, { 2, 1, 0, 0, 0, 0 }, { 3, 3, 3, 3, 3, 3 },
                                                      { 0, 1, 0, 0, 0, 0 }, { 0, 0, 0, 1, 2, 2 }, { 1, 0, 0, 0, 0, 0 } };
  static const Uint32 colors[] = { 0xFF252E3B, 0xFF2A5C80, 0xFF56B4E9, 0xFFF0A63A };
  Uint32 pixels[SIDE * SIDE];
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int x = i % SIDE - EDGE, y = i / SIDE - EDGE, column = x / CELL, row = y / CELL;
    const bool inside = x >= 0 && y >= 0 && column < CELLS && row < CELLS && x % CELL && y % CELL;
    pixels[i] = inside ? colors[bright[row][column]] : 0xFF0F131A;
  }
  SDL_Surface *icon = sdl.CreateRGBSurfaceWithFormatFrom(pixels, SIDE, SIDE, 32, 4 * SIDE, SDL_PIXELFORMAT_ARGB8888);
  if (icon) sdl.SetWindowIcon(window, icon);
  sdl.FreeSurface(icon);
}

/* Open a window of width x height points, which the user may resize; on a fine screen a point is more than
** one pixel: see mn_window_scale. */
mn_window *mn_window_new(mn_ctx *mn, const char *title, int width, int height) {
  if (!load_sdl(mn)) return NULL;
  mn_window *w = calloc(1, sizeof *w);
  if (!w) { mn_fail(mn, "window: no memory"); return NULL; }
  w->ctx = mn;
  sdl.SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
  sdl.SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");               /* it would take Ctrl-C from what reads no events */
  bool ready = !sdl.Init(SDL_INIT_VIDEO);
  /* without a display SDL would choose a driver that shows nothing; accept it only if it was requested by name */
  const char *driver = ready ? sdl.GetCurrentVideoDriver() : NULL;
  if (driver && !getenv("SDL_VIDEODRIVER") && (!strcmp(driver, "offscreen") || !strcmp(driver, "dummy"))) {
    sdl.SetError("there is no window system");
    ready = false;
  }
  /* X copies pixels by itself; OpenGL takes 96 MB more, for one texture that is not scaled.  SDL_RENDER_DRIVER chooses otherwise. */
  if (driver && !strcmp(driver, "x11")) {
    sdl.SetHint(SDL_HINT_RENDER_DRIVER, "software");
    sdl.SetHint(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0");
  }
  /* hidden at first: a renderer may need another window, which SDL puts in this one's place */
  if (ready) w->window = sdl.CreateWindow(title, SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, width, height,
                                          SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI | SDL_WINDOW_HIDDEN);
  if (w->window) w->renderer = sdl.CreateRenderer(w->window, -1, 0);
  if (!w->renderer) {
    mn_fail(mn, "window: no display (%s)", sdl.GetError());
    mn_window_free(w);
    return NULL;
  }
  sdl.SetWindowMinimumSize(w->window, 640, 480);
  set_icon(w->window);
  sdl.ShowWindow(w->window);
  sdl.StartTextInput();
  w->pads = !sdl.InitSubSystem(SDL_INIT_GAMECONTROLLER);      /* a machine without them is no worse a window */
  return w;
}

void mn_window_free(mn_window *w) {
  if (!w) return;
  if (w->texture) sdl.DestroyTexture(w->texture);
  if (w->renderer) sdl.DestroyRenderer(w->renderer);
  if (w->window) sdl.DestroyWindow(w->window);
  if (w->pads) sdl.QuitSubSystem(SDL_INIT_GAMECONTROLLER);
  sdl.QuitSubSystem(SDL_INIT_VIDEO);
  free(w);
}

/* Keys that type no text; the rest come as text, so that they are what the user's layout says. */
static int key_of(SDL_Keycode sym) {
  switch (sym) {
  case SDLK_LEFT: return MN_KEY_LEFT;
  case SDLK_RIGHT: return MN_KEY_RIGHT;
  case SDLK_UP: return MN_KEY_UP;
  case SDLK_DOWN: return MN_KEY_DOWN;
  case SDLK_HOME: return MN_KEY_HOME;
  case SDLK_END: return MN_KEY_END;
  case SDLK_PAGEUP: return MN_KEY_PAGE_UP;
  case SDLK_PAGEDOWN: return MN_KEY_PAGE_DOWN;
  case SDLK_KP_ENTER: return '\r';
  default: return (sym > 0 && sym < 32) || sym == 127 ? sym : 0;
  }
}

static int key_of_text(const char *text) {
  if (text[0] == '=' && !text[1]) return '+';             /* + without shift */
  return text[0] >= 32 && text[0] < 127 && !text[1] ? text[0] : 0;
}

static int key_of_button(int button) {
  switch (button) {
  case SDL_CONTROLLER_BUTTON_DPAD_LEFT: return MN_KEY_LEFT;
  case SDL_CONTROLLER_BUTTON_DPAD_RIGHT: return MN_KEY_RIGHT;
  case SDL_CONTROLLER_BUTTON_DPAD_UP: return MN_KEY_UP;
  case SDL_CONTROLLER_BUTTON_DPAD_DOWN: return MN_KEY_DOWN;
  case SDL_CONTROLLER_BUTTON_A: return MN_PAD_A;
  case SDL_CONTROLLER_BUTTON_B: return MN_PAD_B;
  case SDL_CONTROLLER_BUTTON_X: return MN_PAD_X;
  case SDL_CONTROLLER_BUTTON_Y: return MN_PAD_Y;
  case SDL_CONTROLLER_BUTTON_START: return MN_PAD_START;
  case SDL_CONTROLLER_BUTTON_BACK: return MN_PAD_BACK;
  case SDL_CONTROLLER_BUTTON_LEFTSHOULDER: return MN_PAD_L;
  case SDL_CONTROLLER_BUTTON_RIGHTSHOULDER: return MN_PAD_R;
  default: return 0;
  }
}

/* Hold a direction from now on: it repeats. */
static int hold(mn_window *w, int key, SDL_JoystickID holder, bool by_stick) {
  w->held = key, w->holder = holder, w->by_stick = by_stick;
  w->due = sdl.GetTicks() + FIRST_REPEAT;
  return key;
}

static int button_down(mn_window *w, const SDL_ControllerButtonEvent *e) {
  int key = key_of_button(e->button);
  return key >= MN_KEY_LEFT && key <= MN_KEY_DOWN ? hold(w, key, e->which, false) : key;
}

static void button_up(mn_window *w, const SDL_ControllerButtonEvent *e) {
  if (w->holder == e->which && !w->by_stick && w->held == key_of_button(e->button)) w->held = 0;
}

/* The left stick moved: the direction that it is newly pushed in, or 0.  A direction lasts until the stick is
** back along its own axis, so that a stick near a diagonal does not flicker between two. */
static int stick_moved(mn_window *w, SDL_JoystickID which) {
  SDL_GameController *pad = sdl.GameControllerFromInstanceID(which);
  int x = sdl.GameControllerGetAxis(pad, SDL_CONTROLLER_AXIS_LEFTX);
  int y = sdl.GameControllerGetAxis(pad, SDL_CONTROLLER_AXIS_LEFTY);
  if (w->held && w->by_stick && w->holder == which) {
    int out = w->held == MN_KEY_LEFT ? -x : w->held == MN_KEY_RIGHT ? x : w->held == MN_KEY_UP ? -y : y;
    if (out > STICK_BACK) return 0;
    w->held = 0;
  }
  if (abs(x) < STICK_OUT && abs(y) < STICK_OUT) return 0;
  int key = abs(x) > abs(y) ? (x < 0 ? MN_KEY_LEFT : MN_KEY_RIGHT) : (y < 0 ? MN_KEY_UP : MN_KEY_DOWN);
  return hold(w, key, which, true);
}

/* An event at the pointer, which SDL reports in points. */
static void at_pointer(mn_window *w, mn_event *event, int kind, int key, int x, int y) {
  double scale = mn_window_scale(w);
  *event = (mn_event){ kind, key, (int)(x * scale), (int)(y * scale) };
}

/* Of several moves in a row the last counts: a slow page is not left behind by the pointer. */
static void last_move(SDL_Event *e) {
  SDL_Event next;
  while (sdl.PeepEvents(&next, 1, SDL_PEEKEVENT, SDL_FIRSTEVENT, SDL_LASTEVENT) == 1 && next.type == SDL_MOUSEMOTION)
    sdl.PeepEvents(e, 1, SDL_GETEVENT, SDL_MOUSEMOTION, SDL_MOUSEMOTION);
}

/* F11: the whole screen, and back. */
static void toggle_full_screen(mn_window *w) {
  bool full = sdl.GetWindowFlags(w->window) & SDL_WINDOW_FULLSCREEN_DESKTOP;
  sdl.SetWindowFullscreen(w->window, full ? 0 : SDL_WINDOW_FULLSCREEN_DESKTOP);
}

/* Put an event of SDL into ours; what a viewer has no use for leaves kind 0. */
static void translate(mn_window *w, SDL_Event *e, mn_event *event) {
  int key = 0, x, y;
  switch (e->type) {
  case SDL_QUIT: event->kind = MN_EVENT_QUIT; break;
  case SDL_KEYDOWN:
    if (e->key.keysym.sym == SDLK_F11 && !e->key.repeat) toggle_full_screen(w);
    key = key_of(e->key.keysym.sym);
    break;
  case SDL_TEXTINPUT: key = key_of_text(e->text.text); break;
  case SDL_MOUSEBUTTONDOWN:
    at_pointer(w, event, MN_EVENT_MOUSE, e->button.button, e->button.x, e->button.y);
    break;
  case SDL_MOUSEBUTTONUP:
    at_pointer(w, event, MN_EVENT_RELEASE, e->button.button, e->button.x, e->button.y);
    break;
  case SDL_MOUSEMOTION:
    last_move(e);
    at_pointer(w, event, MN_EVENT_MOVE, 0, e->motion.x, e->motion.y);
    break;
  case SDL_MOUSEWHEEL:
    if (!e->wheel.y) break;
    sdl.GetMouseState(&x, &y);
    at_pointer(w, event, MN_EVENT_WHEEL, e->wheel.direction == SDL_MOUSEWHEEL_FLIPPED ? -e->wheel.y : e->wheel.y, x, y);
    break;
  case SDL_WINDOWEVENT:
    if (e->window.event == SDL_WINDOWEVENT_SIZE_CHANGED)
      at_pointer(w, event, MN_EVENT_RESIZE, 0, e->window.data1, e->window.data2);
    else if (e->window.event == SDL_WINDOWEVENT_EXPOSED) event->kind = MN_EVENT_EXPOSE;
    break;
  case SDL_CONTROLLERDEVICEADDED: sdl.GameControllerOpen(e->cdevice.which); break;
  case SDL_CONTROLLERDEVICEREMOVED:
    if (w->holder == e->cdevice.which) w->held = 0;
    sdl.GameControllerClose(sdl.GameControllerFromInstanceID(e->cdevice.which));
    break;
  case SDL_CONTROLLERBUTTONDOWN: key = button_down(w, &e->cbutton); break;
  case SDL_CONTROLLERBUTTONUP: button_up(w, &e->cbutton); break;
  case SDL_CONTROLLERAXISMOTION:
    if (e->caxis.axis <= SDL_CONTROLLER_AXIS_LEFTY) key = stick_moved(w, e->caxis.which);
    break;
  }
  if (key) event->kind = MN_EVENT_KEY, event->key = key;
}

/* The next thing the user did, if any; what a viewer has no use for is dropped here. */
int mn_window_poll(mn_window *w, mn_event *event) {
  SDL_Event e;
  *event = (mn_event){ 0, 0, 0, 0 };
  while (sdl.PollEvent(&e)) {
    translate(w, &e, event);
    if (event->kind) return 1;
  }
  if (w->held && SDL_TICKS_PASSED(sdl.GetTicks(), w->due)) {
    w->due = sdl.GetTicks() + NEXT_REPEAT;
    *event = (mn_event){ MN_EVENT_KEY, w->held, 0, 0 };
    return 1;
  }
  return 0;
}

void mn_window_wait(mn_window *w, double seconds) {
  if (w->held) seconds = fmin(seconds, (Sint32)(w->due - sdl.GetTicks()) / 1000.0);
  if (seconds > 0) sdl.WaitEventTimeout(NULL, (int)(seconds * 1000 + 0.5));
}

int mn_window_size(mn_window *w, int *size) {
  if (sdl.GetRendererOutputSize(w->renderer, &size[0], &size[1]))
    return mn_fail(w->ctx, "window: %s", sdl.GetError());
  return 0;
}

double mn_window_scale(mn_window *w) {
  int points = 0, pixels = 0, height;
  sdl.GetWindowSize(w->window, &points, &height);
  if (sdl.GetRendererOutputSize(w->renderer, &pixels, &height) || points < 1) return 1;
  return (double)pixels / points;
}

/* Copy a picture into the window; it is shown pixel by pixel from the upper left corner. */
int mn_window_show(mn_window *w, const uint8_t *rgba, int width, int height) {
  if (!w->texture || w->width != width || w->height != height) {
    if (w->texture) sdl.DestroyTexture(w->texture);
    w->texture = sdl.CreateTexture(w->renderer, SDL_PIXELFORMAT_RGBA32, SDL_TEXTUREACCESS_STREAMING,
                                   width, height);
    if (w->texture) sdl.SetTextureBlendMode(w->texture, SDL_BLENDMODE_NONE);
    w->width = width, w->height = height;
  }
  SDL_Rect place = { 0, 0, width, height };
  if (!w->texture || sdl.UpdateTexture(w->texture, NULL, rgba, width * 4) || sdl.RenderClear(w->renderer) ||
      sdl.RenderCopy(w->renderer, w->texture, NULL, &place))
    return mn_fail(w->ctx, "window: a picture of %dx%d cannot be shown (%s)", width, height, sdl.GetError());
  sdl.RenderPresent(w->renderer);
  return 0;
}

/* Read the shown pixels back, as RGBA8 rows from the top; the size must be the shown picture's. */
int mn_window_read(mn_window *w, uint8_t *rgba, int width, int height) {
  if (!w->texture || width != w->width || height != w->height)
    return mn_fail(w->ctx, "window: reading %dx%d, but %dx%d is shown", width, height, w->width, w->height);
  SDL_Rect place = { 0, 0, width, height };
  if (sdl.RenderCopy(w->renderer, w->texture, NULL, &place) ||
      sdl.RenderReadPixels(w->renderer, &place, SDL_PIXELFORMAT_RGBA32, rgba, width * 4))
    return mn_fail(w->ctx, "window: cannot be read back (%s)", sdl.GetError());
  return 0;
}

