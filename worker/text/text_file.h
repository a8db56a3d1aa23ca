/* text_file.h: the files of a published text (train/text/published/manifest.h) that are fetched one
 * by one, and their numbers. */
#ifndef RV_WORKER_TEXT_TEXT_FILE_H
#define RV_WORKER_TEXT_TEXT_FILE_H

#include "train/text/published/index_pages.h"

enum text_file_kind { TEXT_SHARD, TEXT_PAGE };

struct text_file {
	enum text_file_kind kind;
	int level; /* PAGE */
	uint64_t i;
};

/* Returns a number that is the file's alone, and the file of such a number. */
uint64_t text_file_id(const struct text_file *f);
struct text_file text_file_of(uint64_t id);
void text_file_name(const struct text_file *f, char out[static 32]);
/* Reads a shard's name, or with ".part" behind it. Returns false for any other name. */
bool text_file_parse_shard(const char *name, uint64_t *shard, bool *is_part);
/* Returns the size of a file that the text has. */
uint64_t text_file_bytes(const struct manifest *m, const struct text_file *f);

#endif
