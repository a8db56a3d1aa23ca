/* reach_text.h: how others reach a worker, in a sentence for the person who runs it, with the one
 * step that helps (docs/nat.md lists the texts). */
#ifndef RV_WORKER_JOIN_REACH_TEXT_H
#define RV_WORKER_JOIN_REACH_TEXT_H

#include "worker/join/reach_check.h"

enum { REACH_TEXT_BYTES = 768 };
void reach_text(const struct reach_facts *f, char out[REACH_TEXT_BYTES]);

#endif
