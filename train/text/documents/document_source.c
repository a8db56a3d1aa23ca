/* document_source.c: see document_source.h. */
#include "train/text/documents/document_source.h"

#include "train/text/documents/documents.h"
#include "train/text/tokenizer/shard.h"

enum rv_err document_source_is_plain(const struct data_files *files, bool *plain, struct rv_errtext *et) {
	*plain = true;
	for (size_t i = 0; *plain && i < files->n_files; i++)
		RV_TRY(documents_are_plain(&files->files[i], plain, et));
	return RV_OK;
}

enum rv_err document_source_open(struct document_source *s, const struct data_files *files, const char *field,
								 struct rv_errtext *et) {
	bool is_plain;
	*s = (struct document_source){0};
	for (size_t i = 0; i < files->n_files; i++)
		if (shard_recognise(&files->files[i]))
			return rv_fail(et, RV_E_INVALID, "%s holds tokens already, not text", files->files[i].path);
	RV_TRY(document_source_is_plain(files, &is_plain, et));
	if (is_plain) {
		RV_TRY(text_blocks_init(&s->blocks, files, et));
		s->source = text_blocks_source(&s->blocks);
		return RV_OK;
	}
	RV_TRY(document_blocks_open(files, field, &s->documents, et));
	s->source = document_blocks_source(s->documents);
	return RV_OK;
}

void document_source_release(struct document_source *s) {
	document_blocks_close(s->documents);
	text_blocks_release(&s->blocks);
	*s = (struct document_source){0};
}
