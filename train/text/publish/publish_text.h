/* publish_text.h: publishes files of text or of tokens into a directory: opens what they name,
 * states what the publisher says of it, and runs the job (train/text/published/publish_job.h). */
#ifndef RV_TRAIN_TEXT_PUBLISH_PUBLISH_TEXT_H
#define RV_TRAIN_TEXT_PUBLISH_PUBLISH_TEXT_H

#include "train/text/publish/publish_input.h"

struct publish_text {
	const char *const *paths; /* (n_paths) as hub_directory_add takes them */
	int n_paths;
	struct publish_choice choice;
	const char *tokenizer, *pattern; /* as tokenizer_open takes them */
	const char *separator;           /* before each document: a special token, "auto" or "none" */
	int64_t shard_tokens, holdout_every;
	const char *license; /* "": what a data set's README.md states */
	const char *description;
	const char *mirrors; /* URLs, a newline between them (RV_OPT_LIST) */
	const char *out;     /* the directory; made if missing */
	int threads;         /* 0: all cores */
	/* Called about ten times a second with bytes of `total`, and shards written; returns false to
	 * stop. */
	bool (*tick)(void *ctx, uint64_t done, uint64_t total, uint64_t shards);
	void (*repaired)(void *ctx, uint64_t shard); /* as in struct publish_config */
	void *ctx;
};

/* Publishes, continues after an interruption, or repairs. *m is what manifest.json says, *bytes
 * what the files hold. Blocks until it is done. RV_E_CANCELLED: `tick` said so, the text names
 * what is there; RV_E_BUSY: another process publishes into `out`; and what tokenizer_open,
 * publish_input_open and publish_job_run return. */
enum rv_err publish_text(const struct publish_text *p, struct manifest *m, uint64_t *bytes, struct rv_errtext *et);
/* Removes what was published into a directory, and the directory if nothing else is in it; best
 * effort. */
void publish_remove(const char *out, const struct manifest *m);

#endif
