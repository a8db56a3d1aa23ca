/* document_source.h: files of text as blocks to be tokenized, whatever their formats: plain text is
 * cut anywhere (text_blocks.h), other files are read as documents (document_blocks.h). */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_DOCUMENT_SOURCE_H
#define RV_TRAIN_TEXT_DOCUMENTS_DOCUMENT_SOURCE_H

#include "train/text/documents/document_blocks.h"
#include "train/text/tokenizer/text_blocks.h"

/* Zero-initialise; at most one of the two is open. */
struct document_source {
	struct text_blocks blocks;
	struct document_blocks *documents; /* NULL: `blocks` */
	struct block_source source;
};

/* Sets *plain: all files are text that is not packed. Returns what documents_recognise returns for
 * the first file that it refuses. */
enum rv_err document_source_is_plain(const struct data_files *files, bool *plain, struct rv_errtext *et);
/* Opens files of text, which must outlive `s`; `field` as documents_open() takes it. Returns
 * RV_E_INVALID for token files, what documents_recognise returns for others, RV_E_NOMEM; release
 * `s` even then. */
enum rv_err document_source_open(struct document_source *s, const struct data_files *files, const char *field,
								 struct rv_errtext *et);
void document_source_release(struct document_source *s);

#endif
