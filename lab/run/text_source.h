/* text_source.h: the text of a run: a file, a directory, or a URL (net/download.h). */
#ifndef RV_LAB_TEXT_SOURCE_H
#define RV_LAB_TEXT_SOURCE_H

#include "base/event.h"
#include "base/run_config.h"
#include "train/text/data.h"

/* Opens `source` as run `c` reads it, text with `tokenizer` (NULL: as bytes). Remote text is
 * fetched once, and tokens are made once, into $XDG_CACHE_HOME/rivulet (or ~/.cache/rivulet), with
 * progress on `events` (may be NULL). Blocks until done, or until one of `signals` comes
 * (base/signals.h; -1: not watched): RV_E_CANCELLED, and the next call continues from there. The
 * faults of download() and dataset_open(). */
enum rv_err text_source_open(const char *source, const struct run_config *c, const struct tokenizer *tokenizer,
							 struct rv_events *events, int signals, struct dataset **out, struct rv_errtext *et);

#endif
