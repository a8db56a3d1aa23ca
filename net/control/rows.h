/* rows.h: the part of a document that says how a roster of several rows is divided, encoded and
 * checked. Internal to net/control. */
#ifndef RV_NET_CONTROL_ROWS_H
#define RV_NET_CONTROL_ROWS_H

#include "net/control/control.h"
#include "net/control/layout.h"

/* Writes n_rows as one byte; of more than one row also all that lies behind it in the struct, and
 * the places of `members`. */
void rows_write(const struct document *m, struct rv_writer *w);
/* Reads it. With one row, places are indices. */
enum rv_err rows_read(struct document *out, struct rv_reader *r, struct rv_errtext *et);
/* Checks it, the rest of the document being valid. RV_E_INVALID. */
enum rv_err rows_check(const struct document *d, struct rv_errtext *et);

/* ---- document.c, for rows.c ---- */

extern const struct layout layout_participant[]; /* of struct member_ref */
/* Checks that entry `i` of a list can be reached. RV_E_INVALID. */
enum rv_err document_check_ref(const struct document *d, const struct member_ref *list, int i, const char *name,
							   struct rv_errtext *et);

#endif
