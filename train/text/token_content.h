/* token_content.h: a hash of tokens. */
#ifndef RV_TRAIN_TEXT_TOKEN_CONTENT_H
#define RV_TRAIN_TEXT_TOKEN_CONTENT_H

#include "train/text/data.h"
#include "train/text/token_source.h"

/* Writes the text of dataset_content(). Returns what token_source_read returns. */
enum rv_err token_content(const struct token_source *s, char out[sizeof((struct data_content *)0)->text],
						  struct rv_errtext *et);

#endif
