/* tokenize_state.c: reads and writes tokens.json. */
#include "base/file.h"
#include "base/hex.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_MAX_BYTES = 4096 };

static void path_of(const char *out, char path[static PATH_MAX]) {
	(void)snprintf(path, PATH_MAX, "%s/" TOKENIZE_STATE_NAME, out);
}

static bool parse(const json_t *root, struct tokenize_state *s) {
	const char *hex;
	json_int_t shards, tokens, block, skip;
	int done;
	if (json_unpack((json_t *)(uintptr_t)root, "{ss sI sI sI sI sb}", "made_of", &hex, "shards", &shards, "tokens",
					&tokens, "block", &block, "skip", &skip, "done", &done) != 0)
		return false;
	*s = (struct tokenize_state){.shards = (uint64_t)shards,
								 .tokens = (uint64_t)tokens,
								 .block = (uint64_t)block,
								 .skip = (uint64_t)skip,
								 .done = done != 0};
	return shards >= 0 && tokens >= 0 && block >= 0 && skip >= 0 && strlen(hex) == 2 * sizeof s->made_of.b &&
		   rv_hex_decode(hex, s->made_of.b, sizeof s->made_of.b);
}

enum rv_err tokenize_state_read(const char *out, struct tokenize_state *s, struct rv_errtext *et) {
	char path[PATH_MAX];
	uint8_t *text;
	size_t n;
	path_of(out, path);
	RV_TRY(rv_file_read(path, STATE_MAX_BYTES, &text, &n, et));
	json_t *root = json_loadb((const char *)text, n, 0, NULL);
	bool ok = root && parse(root, s);
	json_decref(root);
	free(text);
	return ok ? RV_OK
			  : rv_fail(et, RV_E_CORRUPT, "%s: not written by rivulet tokenize; remove it to start again", path);
}

enum rv_err tokenize_state_write(const char *out, const struct tokenize_state *s, struct rv_errtext *et) {
	char path[PATH_MAX], hex[2 * RV_HASH_BYTES + 1];
	path_of(out, path);
	rv_hex_encode(s->made_of.b, RV_HASH_BYTES, hex);
	json_t *root =
		json_pack("{ss sI sI sI sI sb}", "made_of", hex, "shards", (json_int_t)s->shards, "tokens",
				  (json_int_t)s->tokens, "block", (json_int_t)s->block, "skip", (json_int_t)s->skip, "done", s->done);
	char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	json_decref(root);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "no memory for %s", path);
	enum rv_err e = rv_file_write_atomic(path, text, strlen(text), 0644, et);
	free(text);
	return e;
}
