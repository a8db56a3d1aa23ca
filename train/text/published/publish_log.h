/* publish_log.h: DIR/publish.log, kept while a text is being published: a record for each whole
 * shard, with its hash and the place in the text where it ends. From it the index pages are made,
 * and after a kill it says which shards are as they were written. */
#ifndef RV_TRAIN_TEXT_PUBLISHED_PUBLISH_LOG_H
#define RV_TRAIN_TEXT_PUBLISHED_PUBLISH_LOG_H

#include "base/err.h"
#include "base/hash.h"

#include <stdint.h>

#define PUBLISH_LOG_NAME "publish.log"

struct publish_record {
	struct rv_hash hash;  /* of the shard's file */
	uint64_t block, skip; /* the next shard begins `skip` tokens into this block */
	uint64_t bytes;       /* of the shard's file */
};

struct publish_log {
	int fd;
	char path[544];
};

/* Opens the log of a directory, made if missing. RV_E_FULL, RV_E_IO. */
enum rv_err publish_log_open(struct publish_log *l, const char *dir, struct rv_errtext *et);
void publish_log_close(struct publish_log *l);
/* Writes record i, durably, over what was there. RV_E_FULL, RV_E_IO. */
enum rv_err publish_log_put(struct publish_log *l, uint64_t i, const struct publish_record *r, struct rv_errtext *et);
/* Reads record i. RV_E_CORRUPT: it is not there, or torn; RV_E_IO. */
enum rv_err publish_log_get(const struct publish_log *l, uint64_t i, struct publish_record *r, struct rv_errtext *et);

#endif
