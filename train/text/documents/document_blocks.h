/* document_blocks.h: the documents of files, one file after another, as blocks to be tokenized
 * (train/text/tokenizer/block_source.h): several short documents in a block, a long one in several,
 * cut where text_blocks_cut() allows. Memory: the blocks that are ready. */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_DOCUMENT_BLOCKS_H
#define RV_TRAIN_TEXT_DOCUMENTS_DOCUMENT_BLOCKS_H

#include "train/text/tokenizer/block_source.h"
#include "train/text/tokenizer/data_files.h"

#include <stdbool.h>

struct document_blocks; /* opaque */

/* Opens the files' documents, `field` as documents_open() takes it; both must outlive `*out`.
 * Refuses, before anything is read, each file that documents_recognise() refuses. RV_E_NOMEM. */
enum rv_err document_blocks_open(const struct data_files *files, const char *field, struct document_blocks **out,
								 struct rv_errtext *et);
void document_blocks_close(struct document_blocks *b); /* NULL is fine */
/* Returns the blocks as a source that borrows `b`. */
struct block_source document_blocks_source(struct document_blocks *b);
/* Returns how many documents have been read. */
uint64_t document_blocks_documents(const struct document_blocks *b);

#endif
