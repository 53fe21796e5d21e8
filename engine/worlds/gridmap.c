/* gridmap.c -- reads the drawing of a gridworld, and refuses one in which an episode could not be won. */
#include "gridmap.h"
#include <stdio.h>
#include <string.h>
#include "op.h"

static const char legend[] =
    "# wall, . floor, blank nothing, S start, G goal, ! trap, ? cue, 1-6 choice, a-d key, A-D door";

/* What a character stands for; -1: nothing. */
static int meaning(char c) {
  const char *fixed = " #.G!?", *at = c ? strchr(fixed, c) : NULL;
  if (at) return GRID_UNSEEN + (int)(at - fixed);
  if (c == 'S') return GRID_FLOOR;
  if (c >= 'a' && c < 'a' + GRID_KEYS) return GRID_KEY + c - 'a';
  if (c >= 'A' && c < 'A' + GRID_KEYS) return GRID_DOOR + c - 'A';
  if (c >= '1' && c < '1' + GRID_CHOICES) return GRID_CHOICE + c - '1';
  return -1;
}

static const char *end_of_line(const char *s) { return s + strcspn(s, "\n"); }

static bool is_blank(const char *from, const char *end) {
  while (from < end && (*from == ' ' || *from == '\r')) from++;
  return from == end;
}

/* The drawing's extent: its first line with anything in it, and how many columns and lines. */
static int measure(mn_ctx *mn, const char **text, int *first, int *width, int *height) {
  size_t line = 0, top = 0, bottom = 0, columns = 0;
  const char *start = NULL;
  for (const char *s = *text; *s; line++) {
    const char *end = end_of_line(s), *last = end;
    while (last > s && (last[-1] == ' ' || last[-1] == '\r')) last--;
    if (!is_blank(s, end)) {
      if (!start) start = s, top = line;
      bottom = line;
      if ((size_t)(last - s) > columns) columns = (size_t)(last - s);
    }
    s = *end ? end + 1 : end;
  }
  if (!start) return mn_fail(mn, "gridworld: the map is empty; it is drawn with %s", legend);
  if (columns > GRID_SIDE || bottom - top + 1 > GRID_SIDE)
    return mn_fail(mn, "gridworld: the map has %zu columns and %zu lines, expected at most %d each", columns,
                   bottom - top + 1, GRID_SIDE);
  *text = start, *first = (int)top, *width = (int)columns, *height = (int)(bottom - top + 1);
  return 0;
}

static int read_cells(mn_ctx *mn, const char *s, int first, grid_map *m, bool *digits) {
  for (int y = 0; y < m->height; y++) {
    const char *end = end_of_line(s);
    int n = (int)(end - s) < m->width ? (int)(end - s) : m->width;
    for (int x = 0; x < n; x++) {
      int code = s[x] == '\r' ? GRID_UNSEEN : meaning(s[x]);
      if (code < 0) {
        char shown[16];
        if (s[x] > ' ' && s[x] < 127) snprintf(shown, sizeof shown, "'%c'", s[x]);
        else snprintf(shown, sizeof shown, "byte %d", (unsigned char)s[x]);
        return mn_fail(mn, "gridworld: map line %d, column %d: %s is unknown; expected %s", first + y + 1, x + 1,
                       shown, legend);
      }
      m->cell[y * m->width + x] = (uint8_t)code;
      if (s[x] == 'S') m->start[m->starts++] = (uint16_t)(y * m->width + x);
      if (code >= GRID_CHOICE && code < GRID_SAYS) digits[code - GRID_CHOICE] = true;
    }
    s = *end ? end + 1 : end;
  }
  return 0;
}

/* Mark what can be reached from a place: in rounds, for a key found may open a door passed before.
** Goals, traps and choices end an episode, so nothing is reached through them. */
static void flood(const grid_map *m, int from, uint8_t *reached) {
  uint16_t queue[GRID_SIDE * GRID_SIDE];
  const int step[4][2] = { { 0, -1 }, { 0, 1 }, { -1, 0 }, { 1, 0 } };
  unsigned keys = 0, before;
  do {
    int head = 0, tail = 0;
    before = keys;
    memset(reached, 0, GRID_SIDE * GRID_SIDE);
    reached[from] = 1;
    queue[tail++] = (uint16_t)from;
    while (head < tail) {
      int at = queue[head++], code = m->cell[at];
      if (code >= GRID_KEY && code < GRID_DOOR) keys |= 1u << (code - GRID_KEY);
      if (code == GRID_GOAL || code == GRID_TRAP || (code >= GRID_CHOICE && code < GRID_SAYS)) continue;
      for (int d = 0; d < 4; d++) {
        int x = at % m->width + step[d][0], y = at / m->width + step[d][1], to = y * m->width + x;
        if (x < 0 || y < 0 || x >= m->width || y >= m->height || reached[to]) continue;
        int next = m->cell[to];
        if (next <= GRID_WALL) continue;
        if (next >= GRID_DOOR && next < GRID_CHOICE && !(keys >> (next - GRID_DOOR) & 1)) continue;
        reached[to] = 1;
        queue[tail++] = (uint16_t)to;
      }
    }
  } while (keys != before);
}

/* Every start must reach each choice, and a goal if there are any. */
static int check_ways(mn_ctx *mn, const grid_map *m, int first) {
  uint8_t reached[GRID_SIDE * GRID_SIDE];
  for (int s = 0; s < m->starts; s++) {
    int from = m->start[s], goals = 0, won = 0;
    unsigned choices = 0;
    flood(m, from, reached);
    for (int i = 0; i < m->width * m->height; i++) {
      int code = m->cell[i];
      goals += code == GRID_GOAL, won += code == GRID_GOAL && reached[i];
      if (code >= GRID_CHOICE && code < GRID_SAYS && reached[i]) choices |= 1u << (code - GRID_CHOICE);
    }
    int line = first + from / m->width + 1, column = from % m->width + 1;
    for (int k = 0; k < m->choices; k++)
      if (!(choices >> m->choice[k] & 1))
        return mn_fail(mn, "gridworld: no way leads from the start in line %d, column %d to choice %d", line, column,
                       m->choice[k] + 1);
    if (goals && !won)
      return mn_fail(mn, "gridworld: no way leads from the start in line %d, column %d to a goal", line, column);
    if (!goals && !m->choices) return mn_fail(mn, "gridworld: the map has no goal G and no choices 1-6");
  }
  return 0;
}

int mn_gridmap_read(mn_ctx *mn, const char *text, grid_map *m) {
  bool digits[GRID_CHOICES] = { false };
  int first = 0;
  memset(m, 0, sizeof *m);
  if (measure(mn, &text, &first, &m->width, &m->height) || read_cells(mn, text, first, m, digits)) return -1;
  for (int k = 0; k < GRID_CHOICES; k++)
    if (digits[k]) m->choice[m->choices++] = (uint8_t)k;
  if (!m->starts) return mn_fail(mn, "gridworld: the map has no start S");
  if (m->choices == 1)
    return mn_fail(mn, "gridworld: the map has one choice, %d; expected at least two", m->choice[0] + 1);
  return check_ways(mn, m, first);
}
