/* token_content.h: a name for tokens by what they are. */
#ifndef RV_WORKER_TRAIN_TOKEN_CONTENT_H
#define RV_WORKER_TRAIN_TOKEN_CONTENT_H

#include "worker/train/data.h"
#include "worker/train/token_source.h"

/* Writes the text that dataset_content() describes. What token_source_read refuses. */
enum rv_err token_content(const struct token_source *s, char out[sizeof((struct data_content *)0)->text],
						  struct rv_errtext *et);

#endif
