/* served_text.h: the run's text as the coordinator hands it out: the files of a published directory
 * and nothing else in it. A shard is checked before a byte of it leaves, once, a part at a time, so
 * that the caller's other work goes on meanwhile. Single-threaded; reads block for the disk. */
#ifndef RV_COORDINATOR_SERVED_TEXT_H
#define RV_COORDINATOR_SERVED_TEXT_H

#include "base/err.h"

#include <stdint.h>

struct served_text; /* opaque */

/* A file that is open. */
struct served_file {
	int fd;         /* -1: none */
	uint64_t bytes; /* its size */
	int64_t shard;  /* -1: another file, which members check with data-hash */
};

enum served_state { SERVED_UNCHECKED, SERVED_GOOD, SERVED_DAMAGED };

/* Opens the text of a run: `data_hash` in hex. RV_E_INVALID: the directory holds another text; and
 * what published_open returns. */
enum rv_err served_text_open(const char *dir, const char *data_hash, struct served_text **out, struct rv_errtext *et);
void served_text_close(struct served_text *t); /* NULL is fine */
const char *served_text_dir(const struct served_text *t);

/* Opens a file for reading; the caller ends it with served_file_close. RV_E_NOTFOUND: the text has
 * no such file, or it is missing; RV_E_IO. */
enum rv_err served_file_open(const struct served_text *t, const char *name, struct served_file *out,
							 struct rv_errtext *et);
void served_file_close(struct served_file *f);
/* Returns SERVED_GOOD for files that are no shards. */
enum served_state served_text_state(const struct served_text *t, int64_t shard);
/* Checks the next part, at most 1 MiB, of the shard that is under way, else of this one. At the end
 * of a damaged one: RV_E_CORRUPT, RV_E_NOTFOUND or RV_E_IO, with its name; else RV_OK. */
enum rv_err served_text_check(struct served_text *t, int64_t shard, struct rv_errtext *et);

#endif
