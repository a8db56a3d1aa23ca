/* publish_repair.h: makes the damaged shards of a published text again, from what it was made of.
 *
 * Every shard is read and compared with its index page. If one is damaged or missing, the text is
 * turned into tokens again, beside the directory's files, up to the last such shard: each shard
 * that comes out must have the hash of the index, damaged or not, and only the damaged ones take
 * their places. So other files, another tokenizer or other options replace nothing. */
#ifndef RV_TRAIN_TEXT_PUBLISHED_PUBLISH_REPAIR_H
#define RV_TRAIN_TEXT_PUBLISHED_PUBLISH_REPAIR_H

#include "train/text/published/publish_job.h"

/* Checks the finished text in c->out, and repairs it; calls c->repaired for each shard that took
 * its place. *m is its manifest, *n how many shards were repaired. RV_E_INVALID: what is given
 * makes another text; RV_E_CORRUPT: an index page is damaged; and what manifest_read and
 * tokenize_job_run return. */
enum rv_err publish_repair(const struct publish_config *c, struct manifest *m, uint64_t *n, struct rv_errtext *et);

#endif
