/* document_files.h: reads from a run document which state files joiners may ask for, and which
 * digests are committed. */
#ifndef RV_WORKER_STATE_DOCUMENT_FILES_H
#define RV_WORKER_STATE_DOCUMENT_FILES_H

#include "net/control/control.h"
#include "worker/state/checkpoint_index.h"

struct checkpoint_named document_named_files(const struct document *d);
/* Copies the digests that `d` lists, from round document_reaches_to(d) on. Returns how many. */
int document_committed(const struct document *d, struct rv_hash out[NET_MAX_LOG_DIGESTS]);

#endif
