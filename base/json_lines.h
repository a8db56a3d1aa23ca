/* json_lines.h: a file of JSON objects, one a line, appended to. Each line is one write(), so that a reader never sees
 * half of one for long, and a crash leaves at most one torn line at the end, which the next process to append ends. One
 * thread at a time. */
#ifndef RV_BASE_JSON_LINES_H
#define RV_BASE_JSON_LINES_H

#include "base/err.h"

#include <stdbool.h>

struct json_t; /* jansson */
struct rv_json_lines;

/* Opens `path` for appending, or afresh. RV_E_RANGE (path too long), RV_E_NOMEM, RV_E_IO and kin name the path. */
enum rv_err rv_json_lines_open(const char *path, bool append, struct rv_json_lines **out, struct rv_errtext *et);
void rv_json_lines_close(struct rv_json_lines *l); /* NULL is fine */
/* The last line that was there when it was opened to append, if it was whole and JSON. Borrowed. NULL: there was
 * none. */
const struct json_t *rv_json_lines_last(const struct rv_json_lines *l);
/* Takes the reference to `line`; NULL means that building it failed (RV_E_NOMEM). RV_E_IO, RV_E_FULL. */
enum rv_err rv_json_lines_write(struct rv_json_lines *l, struct json_t *line, struct rv_errtext *et);
/* The lines so far are on the disk, where `path` is one's. RV_E_IO, RV_E_FULL. */
enum rv_err rv_json_lines_sync(struct rv_json_lines *l, struct rv_errtext *et);

#endif
