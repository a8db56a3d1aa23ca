/* publish_input.h: the files that are to be published, as blocks of text or of tokens. */
#ifndef RV_TRAIN_TEXT_PUBLISH_PUBLISH_INPUT_H
#define RV_TRAIN_TEXT_PUBLISH_PUBLISH_INPUT_H

#include "train/text/documents/document_source.h"
#include "train/text/documents/hub_directory.h"
#include "train/text/published/manifest.h"
#include "train/text/tokenizer/token_blocks.h"

/* Layouts of files of tokens. */
enum publish_format { PUBLISH_FORMAT_AUTO, PUBLISH_FORMAT_LLMC, PUBLISH_FORMAT_NANOGPT };

/* Which text of the files. */
struct publish_choice {
	int format;        /* enum publish_format */
	const char *field; /* of JSON Lines and Parquet */
	const char *split; /* of a hub's directory; "": train, or all */
};

/* Zero-initialise. */
struct publish_input {
	struct data_files files;
	char license[HUB_LICENSE_BYTES]; /* of a data set's README.md; "": not stated */
	bool holds_tokens;
	struct token_blocks tokens;
	struct document_source text;
	struct block_source source;
};

/* Opens what `paths` name (hub_directory_add), all text or all tokens; `vocab` bounds the latter.
 * Release it even after a fault: those of hub_directory_add, document_source_open,
 * token_blocks_init; RV_E_NOTFOUND: all files are empty; RV_E_INVALID: text and tokens are mixed,
 * or --format does not fit. */
enum rv_err publish_input_open(struct publish_input *in, const struct publish_choice *c, const char *const *paths,
							   int n_paths, uint32_t vocab, struct rv_errtext *et);
void publish_input_release(struct publish_input *in);
/* Enters the names of the files. */
void publish_input_sources(const struct publish_input *in, struct manifest *m);

#endif
