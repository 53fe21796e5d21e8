/* web_server.c -- what a window is, behind a port of this machine: pages go out as bytes that painter.js paints, keys and the
** pointer come back as events.  The only file that includes libmicrohttpd, which is loaded when the first page is served.
**
**   GET  /?token=T     the document
**   GET  /page?after=N the newest page once it is not number N, or 204 after a while: a browser fetches the next page when
**                      it has read the last one, so whoever is slow misses pages and delays nobody
**   POST /events       lines "kind key x y", as in mn_event
**   POST /address      what is behind the # of the link that somebody opened: a moment, which the program goes to
**
** Nobody else on this machine, and no other page of the browser, may use it: every request carries the token, its Host names
** this machine (or a name that was pointed here could read the pages), and its Origin, if any, is the document's own.
** libmicrohttpd's thread answers; the program's thread draws.  Both hold `lock` while they touch what they share. */
#include "op.h"
#include "view.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONNECTIONS = 256, IDLE = 20, STRANGER = 3, MEMORY = 16 << 10, READERS = 16, PATIENCE = 20, BODY = 4096, EVENTS = 256, TOKEN = 128, ADDRESS = 1024 };

/* What of libmicrohttpd is used. */
#define MHD_FUNCTIONS(F) \
  F(add_response_header) F(create_response_from_buffer) F(destroy_response) F(get_daemon_info) F(lookup_connection_value) F(queue_response) \
  F(resume_connection) F(set_connection_option) F(start_daemon) F(stop_daemon) F(suspend_connection)
#define POINTER(name) __typeof__(MHD_##name) *name;
static struct { MHD_FUNCTIONS(POINTER) } mhd;

static bool load_mhd(mn_ctx *mn) {
  static void *library;
  if (library) return true;
  library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
  if (!library) return mn_fail(mn, "web: libmicrohttpd is not installed (Debian: libmicrohttpd12): %s", dlerror()), false;
#define FIND(name) if (!(mhd.name = (__typeof__(mhd.name))dlsym(library, "MHD_" #name))) goto old;
  MHD_FUNCTIONS(FIND)
  return true;
old:
  mn_fail(mn, "web: the installed libmicrohttpd is too old: %s", dlerror());
  dlclose(library);
  library = NULL;
  return false;
}

typedef struct request {          /* one request of a connection, from its head to its end */
  struct MHD_Connection *connection;
  double since;                   /* when it began to wait; 0: it does not */
  size_t n;
  char body[BODY + 1];
} request;

struct mn_web {
  mn_ctx *ctx;
  struct MHD_Daemon *daemon;
  pthread_mutex_t lock;
  pthread_cond_t changed;         /* an event, or a reader who waits */
  struct MHD_Response *document, *page;
  long number;                    /* of the page; 0: none yet */
  double seen;                    /* when a request was last allowed */
  bool ended;
  request *reader[READERS];       /* those that wait for a page */
  int n_readers, first, n_events; /* events: a ring */
  mn_event event[EVENTS];
  char token[TOKEN];
  char wanted[ADDRESS], address[ADDRESS];        /* the last one that was asked for; that the program reads */
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- answers ---- */

static struct MHD_Response *response_of(const char *bytes, size_t n, const char *type) {
  struct MHD_Response *r = mhd.create_response_from_buffer(n, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);
  static const char *const always[][2] = { { "Cache-Control", "no-store" }, { "X-Content-Type-Options", "nosniff" }, { "Referrer-Policy", "no-referrer" },
    { "X-Frame-Options", "DENY" }, { "Cross-Origin-Resource-Policy", "same-origin" }, { "Content-Security-Policy",
      "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'" } };
  if (!r) return NULL;
  mhd.add_response_header(r, "Content-Type", type);
  for (size_t i = 0; i < sizeof always / sizeof *always; i++) mhd.add_response_header(r, always[i][0], always[i][1]);
  return r;
}

/* For whoever opens a link of yesterday: what is behind its # stays, and goes with the token of today. */
static const char *const stranger = "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>Mneme</title>"
  "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:4em auto;padding:0 1em}input{font:inherit;width:100%}</style>"
  "<p>This address needs its token, which is another one each time the program starts. Paste the link that it printed:"
  "<p><input autofocus aria-label=\"the link that the program printed\" placeholder=\"http://localhost:8650/?token=...\">"
  "<script>document.querySelector('input').oninput = event => { const found = /token=([0-9a-f]+)/.exec(event.target.value);"
  "if (found) location.search = '?token=' + found[1]; }</script></html>";

static enum MHD_Result say(struct MHD_Connection *c, unsigned status, const char *text) {
  struct MHD_Response *r = response_of(text, strlen(text), *text == '<' ? "text/html; charset=utf-8" : "text/plain; charset=utf-8");
  enum MHD_Result result = r ? mhd.queue_response(c, status, r) : MHD_NO;
  if (r) mhd.destroy_response(r);
  return result;
}

/* ---- who may ---- */

static bool same(const char *given, const char *token) {          /* in a time that does not say how much of it is right */
  size_t n = strlen(token);
  if (!given || strlen(given) != n) return false;
  unsigned differ = 0;
  for (size_t i = 0; i < n; i++) differ |= (unsigned)(given[i] ^ token[i]);
  return !differ;
}

static bool names_this_machine(const char *host) {
  static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
  for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
    size_t n = strlen(names[i]);
    if (strncasecmp(host, names[i], n)) continue;
    if (!host[n]) return true;
    if (host[n] == ':' && strlen(host + n + 1) <= 5 && strspn(host + n + 1, "0123456789") == strlen(host + n + 1)) return true;
  }
  return false;
}

/* The status that a request is refused with; 0: it is allowed. */
static unsigned refused(const mn_web *w, struct MHD_Connection *c, const char *url, const char *method) {
  const char *host = mhd.lookup_connection_value(c, MHD_HEADER_KIND, "Host");
  const char *origin = mhd.lookup_connection_value(c, MHD_HEADER_KIND, "Origin");
  const bool document = !strcmp(url, "/"), page = !strcmp(url, "/page"), post = !strcmp(url, "/events") || !strcmp(url, "/address");
  if (!names_this_machine(host)) return 421;
  if (origin && (strncmp(origin, "http://", 7) || strcmp(origin + 7, host))) return 403;
  const char *given = document ? mhd.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token")
                               : mhd.lookup_connection_value(c, MHD_HEADER_KIND, "X-Token");
  if (!same(given, w->token)) return 403;
  if (!document && !page && !post) return 404;
  if (strcmp(method, post ? "POST" : "GET")) return 405;
  const char *length = mhd.lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
  return length && strtoull(length, NULL, 10) > BODY ? 413 : 0;
}

/* ---- events ---- */

/* Add an event; of moves in a row the last counts.  False: there is no room. */
static bool add(mn_web *w, mn_event e) {
  mn_event *last = &w->event[(w->first + w->n_events + EVENTS - 1) % EVENTS];
  if (w->n_events && e.kind == MN_EVENT_MOVE && last->kind == MN_EVENT_MOVE) *last = e;
  else if (w->n_events == EVENTS) return false;
  else w->event[(w->first + w->n_events++) % EVENTS] = e;
  return true;
}

/* Read lines "kind key x y" of a browser: 204, or what is wrong with them. */
static unsigned read_events(mn_web *w, const char *text) {
  while (*text) {
    long v[4];
    for (int i = 0; i < 4; i++) {
      char *end;
      errno = 0;
      v[i] = strtol(text, &end, 10);
      if (end == text || errno || v[i] < -16384 || v[i] > 16384 || *end != (i < 3 ? ' ' : '\n')) return 400;
      text = end + 1;
    }
    if (v[0] < MN_EVENT_KEY || v[0] > MN_EVENT_RESIZE) return 400;
    if (!add(w, (mn_event){ (int32_t)v[0], (int32_t)v[1], (int32_t)v[2], (int32_t)v[3] })) return 429;
  }
  pthread_cond_signal(&w->changed);
  return 204;
}

/* Take an address: 204, or what is wrong with it. */
static unsigned read_address(mn_web *w, const request *r) {
  if (r->n >= ADDRESS) return 413;
  for (size_t i = 0; i < r->n; i++) if (r->body[i] <= ' ' || r->body[i] > '~') return 400;
  if (!add(w, (mn_event){ MN_EVENT_ADDRESS, 0, 0, 0 })) return 429;
  memcpy(w->wanted, r->body, r->n + 1);
  pthread_cond_signal(&w->changed);
  return 204;
}

/* ---- requests ---- */

/* Let those who have waited since `since` or longer be answered; `lock` is held. */
static void wake(mn_web *w, double since) {
  for (int i = w->n_readers; i-- > 0;)
    if (w->reader[i]->since <= since) {
      struct MHD_Connection *c = w->reader[i]->connection;
      w->reader[i] = w->reader[--w->n_readers];
      mhd.resume_connection(c);
    }
}

/* The newest page, if it is not the one that the browser has; else later. */
static enum MHD_Result give_page(mn_web *w, request *r) {
  const char *after = mhd.lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, "after");
  const bool has = after && strtol(after, NULL, 10) == w->number;
  if (w->ended) return say(r->connection, 410, "the program has ended\n");
  if (w->page && !has) return mhd.queue_response(r->connection, 200, w->page);
  if (r->since > 0) return say(r->connection, 204, "");              /* it has waited long enough */
  if (w->n_readers == READERS) return say(r->connection, 503, "too many pages are open\n");
  r->since = now();
  w->reader[w->n_readers++] = r;
  mhd.suspend_connection(r->connection);
  pthread_cond_signal(&w->changed);
  return MHD_YES;
}

static enum MHD_Result answer(void *cls, struct MHD_Connection *c, const char *url, const char *method, const char *version, const char *data,
                              size_t *n, void **mine) {
  mn_web *w = cls;
  request *r = *mine;
  (void)version;
  if (!r) {                                                           /* its head is there */
    const unsigned status = refused(w, c, url, method);
    if (status) return say(c, status, status == 403 && !url[1] ? stranger : status == 403 ? "this address needs its token: open the link that the program "
                           "printed\n" : status == 421 ? "this is a server of this machine: open it as localhost\n" : "no\n");
    if (!(*mine = r = calloc(1, sizeof *r))) return MHD_NO;
    r->connection = c;
    mhd.set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)IDLE);          /* who has the token may take its time */
    return MHD_YES;
  }
  if (*n) {                                                           /* a piece of its body; one that is too long ends the connection */
    if (*n > BODY - r->n) return MHD_NO;
    memcpy(r->body + r->n, data, *n), r->n += *n, *n = 0;
    return MHD_YES;
  }
  enum MHD_Result result;
  pthread_mutex_lock(&w->lock);
  w->seen = now();
  if (url[1] == 'p') result = give_page(w, r);
  else if (url[1] == 'a') result = say(c, read_address(w, r), "");
  else if (url[1] == 'e') result = say(c, memchr(r->body, 0, r->n) ? 400 : read_events(w, r->body), "");
  else result = mhd.queue_response(c, 200, w->document);
  pthread_mutex_unlock(&w->lock);
  return result;
}

static void completed(void *cls, struct MHD_Connection *c, void **mine, enum MHD_RequestTerminationCode why) {
  mn_web *w = cls;
  (void)c, (void)why;
  pthread_mutex_lock(&w->lock);
  for (int i = w->n_readers; i-- > 0;)
    if (w->reader[i] == *mine) w->reader[i] = w->reader[--w->n_readers];
  pthread_mutex_unlock(&w->lock);
  free(*mine);
  *mine = NULL;
}

static void quiet(void *cls, const char *format, va_list args) { (void)cls, (void)format, (void)args; }

/* ---- the window's other half ---- */

/* Serve a document and the pages to come to those who have the token, at a port of 127.0.0.1; 0: any that is free. */
mn_web *mn_web_new(mn_ctx *mn, const char *html, const char *token, int port) {
  if (!load_mhd(mn)) return NULL;
  if (port < 0 || port > 65535) return mn_fail(mn, "web: port is %d, expected 0..65535", port), NULL;
  if (strlen(token) < 16 || strlen(token) >= TOKEN) return mn_fail(mn, "web: a token of %zu letters, expected 16..%d", strlen(token), TOKEN - 1), NULL;
  mn_web *w = calloc(1, sizeof *w);
  if (!w) return mn_fail(mn, "web: no memory"), NULL;
  w->ctx = mn;
  snprintf(w->token, sizeof w->token, "%s", token);
  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&w->changed, &clock);
  pthread_condattr_destroy(&clock);
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  if (!(w->document = response_of(html, strlen(html), "text/html; charset=utf-8"))) {
    mn_fail(mn, "web: no memory");
    mn_web_free(w);
    return NULL;
  }
  sigset_t all, before;                                               /* signals are the program's, not the server's */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  errno = 0;
  w->daemon = mhd.start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, w,
    MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)STRANGER, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_NOTIFY_COMPLETED, completed, w,
    MHD_OPTION_END);
  const int why = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (w->daemon) return w;
  mn_fail(mn, "web: no server at port %d of 127.0.0.1: %s", port, strerror(why));
  mn_web_free(w);
  return NULL;
}

void mn_web_free(mn_web *w) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->ended = true;
  wake(w, now());
  pthread_mutex_unlock(&w->lock);
  if (w->daemon) {
    nanosleep(&(struct timespec){ 0, 50000000 }, NULL);               /* those who wait read that it has ended */
    mhd.stop_daemon(w->daemon);
  }
  if (w->document) mhd.destroy_response(w->document);
  if (w->page) mhd.destroy_response(w->page);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  free(w);
}

int mn_web_port(const mn_web *w) { return mhd.get_daemon_info(w->daemon, MHD_DAEMON_INFO_BIND_PORT)->port; }

/* The next thing that somebody did, if any. */
int mn_web_poll(mn_web *w, mn_event *event) {
  pthread_mutex_lock(&w->lock);
  const bool some = w->n_events > 0;
  *event = some ? w->event[w->first] : (mn_event){ 0, 0, 0, 0 };
  if (some) w->first = (w->first + 1) % EVENTS, w->n_events--;
  pthread_mutex_unlock(&w->lock);
  return some;
}

const char *mn_web_address(mn_web *w) {
  pthread_mutex_lock(&w->lock);
  memcpy(w->address, w->wanted, sizeof w->address);
  pthread_mutex_unlock(&w->lock);
  return w->address;
}

/* Sleep; wakes early for an event, and for a reader where a page is `due`. */
void mn_web_wait(mn_web *w, double seconds, bool due) {
  const double until = now() + (seconds > 0 ? seconds : 0);
  const struct timespec then = { (time_t)until, (long)(1e9 * (until - (double)(time_t)until)) };
  pthread_mutex_lock(&w->lock);
  while (!w->n_events && !(due && w->n_readers) && seconds > 0 && !pthread_cond_timedwait(&w->changed, &w->lock, &then)) ;
  wake(w, now() - PATIENCE);
  pthread_mutex_unlock(&w->lock);
}

/* How many wait for a page, or -1 where nobody has asked for anything for a while. */
int mn_web_readers(mn_web *w) {
  pthread_mutex_lock(&w->lock);
  const int n = w->n_readers || now() - w->seen < 2 ? w->n_readers : -1;
  pthread_mutex_unlock(&w->lock);
  return n;
}

/* Give the next page, `n` bytes that zlib has compressed, to all who wait and to those who come. */
int mn_web_show(mn_web *w, const char *bytes, size_t n) {
  struct MHD_Response *page = response_of(bytes, n, "application/octet-stream");
  char number[24];
  if (!page) return mn_fail(w->ctx, "web: no memory for a page of %zu bytes", n);
  pthread_mutex_lock(&w->lock);
  snprintf(number, sizeof number, "%ld", ++w->number);
  mhd.add_response_header(page, "X-Page", number);
  mhd.add_response_header(page, "Content-Encoding", "deflate");
  if (w->page) mhd.destroy_response(w->page);
  w->page = page;
  wake(w, now());
  pthread_mutex_unlock(&w->lock);
  return 0;
}
