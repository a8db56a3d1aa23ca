/* token_content.h: a name for tokens by what they are. */
#ifndef RV_TRAIN_TEXT_TOKEN_CONTENT_H
#define RV_TRAIN_TEXT_TOKEN_CONTENT_H

#include "train/text/data.h"
#include "train/text/token_source.h"

/* Writes the text that dataset_content() describes. What token_source_read refuses. */
enum rv_err token_content(const struct token_source *s, char out[sizeof((struct data_content *)0)->text],
						  struct rv_errtext *et);

#endif
