/* text_source.h: the text of a run: a file, a directory, or a URL (net/download.h). */
#ifndef RV_LAB_TEXT_SOURCE_H
#define RV_LAB_TEXT_SOURCE_H

#include "base/event.h"
#include "base/run_config.h"
#include "train/text/data.h"

/* A text and how it is opened; all is borrowed while text_source_open() runs. */
struct text_source {
	const char *path;
	const char *field;                 /* of JSON Lines and Parquet; NULL: the usual one */
	const struct tokenizer *tokenizer; /* of text; NULL: bytes */
	struct rv_events *events;          /* gets the progress; may be NULL */
	int signals;                       /* that stop it (base/signals.h); -1: not watched */
};

/* Opens a text as run `c` reads it. Remote text is fetched once, and tokens are made once, into
 * $XDG_CACHE_HOME/rivulet (or ~/.cache/rivulet). Blocks until done, or until a signal comes:
 * RV_E_CANCELLED, and the next call continues from there. The faults of download() and
 * dataset_open(). */
enum rv_err text_source_open(const struct text_source *source, const struct run_config *c, struct dataset **out,
							 struct rv_errtext *et);

#endif
