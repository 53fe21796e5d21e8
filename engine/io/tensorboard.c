/* tensorboard.c -- TensorBoard's event files, written by hand: TFRecord frames around "Event" protobufs.
** The formats (github.com/tensorflow/tensorflow: core/lib/io/record_writer.h, core/util/event.proto,
** core/framework/{summary,tensor}.proto) have been stable for a decade, and a scalar needs eight fields;
** that is less than a protobuf library.  W&B, Aim and MLflow read these files too. */
#include "op.h"
#include <stdlib.h>
#include <string.h>

typedef struct bytes { uint8_t *at; size_t n, room; bool failed; } bytes;

static void add(bytes *b, const void *data, size_t n) {
  if (b->failed) return;
  if (b->n + n > b->room) {
    size_t room = 2 * (b->n + n) + 64;
    uint8_t *at = realloc(b->at, room);
    if (!at) { b->failed = true; return; }
    b->at = at;
    b->room = room;
  }
  memcpy(b->at + b->n, data, n);
  b->n += n;
}

/* ---- protobuf fields: a tag (number and wire type), then the value, numbers low byte first ---- */

enum { VARINT, FIXED64, LENGTH, FIXED32 = 5 };

static void add_varint(bytes *b, uint64_t v) {
  uint8_t digit;
  do {
    digit = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
    add(b, &digit, 1);
  } while (v >>= 7);
}

static void add_tag(bytes *b, int field, int wire) { add_varint(b, (uint64_t)(field << 3 | wire)); }

static void add_string(bytes *b, int field, const void *data, size_t n) {
  add_tag(b, field, LENGTH);
  add_varint(b, n);
  add(b, data, n);
}

/* A message within a message; `inner` is used up. */
static void add_message(bytes *b, int field, bytes *inner) {
  add_string(b, field, inner->at, inner->n);
  b->failed |= inner->failed;
  free(inner->at);
  *inner = (bytes){ 0 };
}

/* ---- records: length, its check, the data, their check ---- */

static uint32_t masked(const void *data, size_t n) {
  uint32_t crc = mn_crc32c(0, data, (double)n);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Append one Event whose last field (`what`, used up) is a message or string to the file. */
static int append_event(mn_ctx *mn, const char *path, double step, int field, bytes *what) {
  bytes event = { 0 }, record = { 0 };
  double wall = mn_clock(true);
  add_tag(&event, 1, FIXED64);
  add(&event, &wall, 8);
  add_tag(&event, 2, VARINT);
  add_varint(&event, (uint64_t)step);
  add_message(&event, field, what);
  uint64_t n = event.n;
  uint32_t check = masked(&n, 8);
  add(&record, &n, 8);
  add(&record, &check, 4);
  check = masked(event.at, event.n);
  add(&record, event.at, event.n);
  add(&record, &check, 4);
  int result = event.failed || record.failed ? mn_fail(mn, "%s: no memory", path)
                                             : mn_file_append(mn, path, record.at, (double)record.n);
  free(event.at);
  free(record.at);
  return result;
}

/* Begin an event file: its version, and one text (Markdown) under `tag`.  Two records. */
int mn_events_begin(mn_ctx *mn, const char *path, const char *tag, const char *text) {
  enum { DT_STRING = 7 };
  bytes version = { 0 }, plugin = { 0 }, metadata = { 0 }, tensor = { 0 }, value = { 0 }, summary = { 0 };
  add(&version, "brain.Event:2", 13);
  if (append_event(mn, path, 0, 3, &version)) return -1;
  add_string(&plugin, 1, "text", 4);
  add_message(&metadata, 1, &plugin);
  add_tag(&tensor, 1, VARINT);
  add_varint(&tensor, DT_STRING);
  add_string(&tensor, 2, "\x12\x02\x08\x01", 4);                /* shape: one axis of size 1 */
  add_string(&tensor, 8, text, strlen(text));
  add_string(&value, 1, tag, strlen(tag));
  add_message(&value, 8, &tensor);
  add_message(&value, 9, &metadata);
  add_message(&summary, 1, &value);
  return append_event(mn, path, 0, 5, &summary);
}

/* Append one record: n numbers under their tags, at a step. */
int mn_events_add(mn_ctx *mn, const char *path, double step, int n, const char *const *tag,
                  const float *number) {
  bytes summary = { 0 };
  for (int i = 0; i < n; i++) {
    bytes value = { 0 };
    add_string(&value, 1, tag[i], strlen(tag[i]));
    add_tag(&value, 2, FIXED32);
    add(&value, &number[i], 4);
    add_message(&summary, 1, &value);
  }
  return append_event(mn, path, step, 5, &summary);
}

/* Keep the first n records only: what was logged after a checkpoint goes when training resumes there. */
int mn_events_cut(mn_ctx *mn, const char *path, int n) {
  mn_file *f = mn_file_new(mn, path);
  if (!f) return -1;
  const char *data = mn_file_data(f);
  uint64_t end = (uint64_t)mn_file_bytes(f), at = 0, length;
  for (; n > 0 && end - at >= 16; n--) {
    memcpy(&length, data + at, 8);
    if (length > end - at - 16) break;                          /* a record that was not finished */
    at += 16 + length;
  }
  mn_file_free(f);
  return mn_file_cut(mn, path, (double)at);
}
