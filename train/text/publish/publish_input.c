/* publish_input.c: see publish_input.h. */
#include "train/text/publish/publish_input.h"

#include "base/clean_text.h"
#include "train/text/tokenizer/shard.h"

#include <stdio.h>
#include <string.h>

static enum rv_err add_paths(struct publish_input *in, const struct publish_choice *c, const char *const *paths,
							 int n_paths, struct rv_errtext *et) {
	for (int i = 0; i < n_paths; i++) {
		char license[HUB_LICENSE_BYTES];
		RV_TRY(hub_directory_add(&in->files, paths[i], c->split, license, et));
		if (i == 0 || strcmp(license, in->license) == 0)
			memcpy(in->license, license, sizeof license);
		else
			in->license[0] = '\0'; /* of several, none is all's */
	}
	return in->files.n_files > 0
			   ? RV_OK
			   : rv_fail(et, RV_E_NOTFOUND, "%.200s: no files, or only empty ones: nothing to publish", paths[0]);
}

/* Files of tokens are known by their header or their name; what is given as --format nanogpt has
 * neither a header nor, if renamed, such a name. */
static enum rv_err decide(struct publish_input *in, int format, struct rv_errtext *et) {
	size_t n_tokens = 0;
	for (size_t i = 0; i < in->files.n_files; i++)
		n_tokens += shard_recognise(&in->files.files[i]);
	in->holds_tokens = n_tokens > 0 || format == PUBLISH_FORMAT_NANOGPT;
	if (n_tokens < in->files.n_files && in->holds_tokens && format != PUBLISH_FORMAT_NANOGPT)
		return rv_fail(
			et, RV_E_INVALID,
			"%zu of the %zu files hold tokens (llm.c's header, or a name that ends in .bin), the others text: "
			"publish one sort, for example with a pattern ('DIR/*.bin')",
			n_tokens, in->files.n_files);
	if (!in->holds_tokens && format == PUBLISH_FORMAT_LLMC)
		return rv_fail(et, RV_E_INVALID, "--format llmc: %.200s has no header of llm.c", in->files.files[0].path);
	return RV_OK;
}

enum rv_err publish_input_open(struct publish_input *in, const struct publish_choice *c, const char *const *paths,
							   int n_paths, uint32_t vocab, struct rv_errtext *et) {
	const enum token_layout layout = c->format == PUBLISH_FORMAT_NANOGPT ? TOKEN_LAYOUT_PLAIN : TOKEN_LAYOUT_LLMC;
	RV_TRY(add_paths(in, c, paths, n_paths, et));
	RV_TRY(decide(in, c->format, et));
	if (in->holds_tokens) {
		RV_TRY(token_blocks_init(&in->tokens, &in->files, layout, vocab, et));
		in->source = token_blocks_source(&in->tokens);
		return RV_OK;
	}
	RV_TRY(document_source_open(&in->text, &in->files, c->field, et));
	in->source = in->text.source;
	return RV_OK;
}

void publish_input_release(struct publish_input *in) {
	document_source_release(&in->text);
	token_blocks_release(&in->tokens);
	data_files_release(&in->files);
	*in = (struct publish_input){0};
}

void publish_input_sources(const struct publish_input *in, struct manifest *m) {
	m->n_sources = (int64_t)in->files.n_files;
	m->n_named = m->n_sources < MANIFEST_SOURCES ? m->n_sources : MANIFEST_SOURCES;
	for (int64_t i = 0; i < m->n_named; i++) {
		const char *path = in->files.files[i].path, *slash = strrchr(path, '/');
		(void)snprintf(m->sources[i], sizeof m->sources[i], "%s", slash ? slash + 1 : path);
		clean_text(m->sources[i]);
	}
}
