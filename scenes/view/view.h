/* view.h -- what Lua calls to see a canvas: pixels without a window (raster.c, font.c), a window that
** shows pixels and collects keys (window.c), and a server that is a window in browsers (web_server.c).  Build:
** libmneme_view.so, loaded only when something is to be seen, so training needs neither SDL2 nor FreeType.
**
** The rules of engine/mneme.h hold: NULL or -1 and mn_error(mn) on failure, _new gives you something to
** _free, any other pointer is borrowed.  Below the mark: plain declarations only, read by LuaJIT too. */
#ifndef MN_VIEW_H
#define MN_VIEW_H
#include "mneme.h"

/* ---- ffi from here ---- */

/* A painter: a font, and one picture of RGBA8 pixels, rows from the top, without padding.
** font "": $MNEME_FONT, else DejaVu Sans where systems keep it. */
typedef struct mn_raster mn_raster;
mn_raster     *mn_raster_new(mn_ctx *mn, const char *font);
void           mn_raster_free(mn_raster *r);
int            mn_raster_paint(mn_raster *r, const mn_canvas *c, uint32_t background, int width, int height);
const uint8_t *mn_raster_pixels(const mn_raster *r);            /* of the last paint; borrowed until the next */
double         mn_raster_text_width(mn_raster *r, const char *utf8, float size);   /* in pixels */

/* What the user did.  MOUSE: a button went down, RELEASE: up; MOVE: the pointer moved, several moves in a row
** being one event; WHEEL: key = steps, > 0 away from the user. */
enum { MN_EVENT_QUIT = 1, MN_EVENT_KEY, MN_EVENT_MOUSE, MN_EVENT_RELEASE, MN_EVENT_MOVE, MN_EVENT_WHEEL,
       MN_EVENT_RESIZE, MN_EVENT_EXPOSE, MN_EVENT_ADDRESS };
/* Keys that are no ASCII.  The d-pad and the left stick of a gamepad are LEFT .. DOWN; its buttons are PAD_*. */
enum { MN_KEY_LEFT = 256, MN_KEY_RIGHT, MN_KEY_UP, MN_KEY_DOWN, MN_KEY_HOME, MN_KEY_END, MN_KEY_PAGE_UP, MN_KEY_PAGE_DOWN,
       MN_PAD_A, MN_PAD_B, MN_PAD_X, MN_PAD_Y, MN_PAD_START, MN_PAD_BACK, MN_PAD_L, MN_PAD_R };
typedef struct mn_event { int32_t kind, key, x, y; } mn_event;  /* key: ASCII as typed (Shift gives 'L'), MN_KEY_*, MN_PAD_*;
                                                                    a mouse button: 1 left, 2 middle, 3 right;
                                                                    x, y: the pointer or the new size, in pixels */

/* A window on the screen; call all of it from one thread. */
typedef struct mn_window mn_window;
mn_window     *mn_window_new(mn_ctx *mn, const char *title, int width, int height);
void           mn_window_free(mn_window *w);
int            mn_window_poll(mn_window *w, mn_event *event);   /* 1: an event, 0: none; never waits */
void           mn_window_wait(mn_window *w, double seconds);    /* sleeps; wakes early for an event */
int            mn_window_size(mn_window *w, int *size);         /* width and height in pixels */
double         mn_window_scale(mn_window *w);                   /* pixels per point: 1, and 1.5 or 2 on fine screens */
int            mn_window_show(mn_window *w, const uint8_t *rgba, int width, int height);
int            mn_window_read(mn_window *w, uint8_t *rgba, int width, int height);  /* what is shown, for tests */

/* The same behind a port of this machine, for browsers (web_server.c; there where libmicrohttpd was when this was built).  Pages are
** bytes that painter.js reads; a RESIZE has in key a thousandth of the pixels per point. */
typedef struct mn_web mn_web;
mn_web        *mn_web_new(mn_ctx *mn, const char *html, const char *token, int port);
void           mn_web_free(mn_web *w);
int            mn_web_port(const mn_web *w);
int            mn_web_poll(mn_web *w, mn_event *event);
void           mn_web_wait(mn_web *w, double seconds, bool due);
int            mn_web_readers(mn_web *w);
int            mn_web_show(mn_web *w, const char *bytes, size_t n);
const char    *mn_web_address(mn_web *w);                       /* that an ADDRESS asked for: what is behind a link's #; borrowed until the next */

#endif
