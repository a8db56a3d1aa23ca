/* json_lines.h: a file of JSON objects, one a line, appended to. Each line is one write(), so that
 * a reader does not see half of one for long. A crash leaves at most one torn line at the end; the
 * next process that appends ends it. One thread at a time. */
#ifndef RV_BASE_JSON_LINES_H
#define RV_BASE_JSON_LINES_H

#include "base/err.h"

#include <stdbool.h>

struct json_t; /* jansson */
struct rv_json_lines;

/* Opens `path` for appending, or afresh. RV_E_RANGE (path too long), RV_E_NOMEM, RV_E_IO and kin
 * name the path. */
enum rv_err rv_json_lines_open(const char *path, bool append, struct rv_json_lines **out, struct rv_errtext *et);
void rv_json_lines_close(struct rv_json_lines *l); /* NULL is fine */
/* Returns the last line of the file when it was opened to append, if it was whole and JSON;
 * borrowed. NULL if there was none. */
const struct json_t *rv_json_lines_last(const struct rv_json_lines *l);
/* Appends `line` and takes its reference; NULL means that building it failed (RV_E_NOMEM). RV_E_IO,
 * RV_E_FULL. */
enum rv_err rv_json_lines_write(struct rv_json_lines *l, struct json_t *line, struct rv_errtext *et);
/* Makes the lines so far durable, if `path` is on a disk. RV_E_IO, RV_E_FULL. */
enum rv_err rv_json_lines_sync(struct rv_json_lines *l, struct rv_errtext *et);

#endif
