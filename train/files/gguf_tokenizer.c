/* gguf_tokenizer.c: writes tokens, merges and special tokens of tokenizer.json under the keys of
 * llama.cpp's "gpt2" tokenizer, a byte-level BPE. */
#include "train/files/gguf_tokenizer.h"

#include "base/file.h"
#include "train/files/hf_tokenizer.h"
#include "train/text/tokenizer/patterns.h"
#include "train/text/tokenizer/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* llama.cpp's enum llama_token_type. */
enum token_type { TOKEN_NORMAL = 1, TOKEN_CONTROL = 3, TOKEN_USER_DEFINED = 4, TOKEN_UNUSED = 5 };

struct token {
	const char *text; /* borrowed from the JSON; NULL: no token has this id */
	size_t n;
	enum token_type type;
};

/* Returns llama.cpp's name of the pre-tokenizer, or NULL. */
static const char *pre_tokenizer_name(const json_t *root) {
	const json_t *pre = json_object_get(root, "pre_tokenizer"), *list = json_object_get(pre, "pretokenizers");
	const json_t *first = list ? json_array_get(list, 0) : pre;
	const char *type = json_string_value(json_object_get(first, "type"));
	const char *regex = json_string_value(json_object_get(json_object_get(first, "pattern"), "Regex"));
	bool byte_level = type && strcmp(type, "ByteLevel") == 0 && !json_is_false(json_object_get(first, "use_regex"));
	if (byte_level || (regex && strcmp(regex, pattern_gpt2) == 0))
		return "gpt-2";
	return regex && strcmp(regex, known_pattern_find("llama3")->pattern) == 0 ? "llama-bpe" : NULL;
}

/* Collects the tokens by id; tokenizer_load has checked the ids. */
static void collect_tokens(const json_t *root, struct token *tokens) {
	json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab"), *id, *added;
	const char *text;
	size_t i, n;
	json_object_keylen_foreach(vocab, text, n, id) {
		tokens[json_integer_value(id)] = (struct token){text, n, TOKEN_NORMAL};
	}
	json_array_foreach(json_object_get(root, "added_tokens"), i, added) {
		bool special = json_is_true(json_object_get(added, "special"));
		const json_t *content = json_object_get(added, "content");
		tokens[json_integer_value(json_object_get(added, "id"))] = (struct token){
			json_string_value(content), json_string_length(content), special ? TOKEN_CONTROL : TOKEN_USER_DEFINED};
	}
}

static void put_tokens(struct gguf_writer *g, const struct token *tokens, uint32_t n) {
	gguf_put_array(g, "tokenizer.ggml.tokens", GGUF_STRING, n);
	for (uint32_t i = 0; i < n; i++) {
		char unused[24];
		snprintf(unused, sizeof unused, "[PAD%u]", i);
		bool used = tokens[i].text != NULL;
		gguf_add_string(g, used ? tokens[i].text : unused, used ? tokens[i].n : strlen(unused));
	}
	gguf_put_array(g, "tokenizer.ggml.token_type", GGUF_I32, n);
	for (uint32_t i = 0; i < n; i++)
		gguf_add_i32(g, tokens[i].text ? tokens[i].type : TOKEN_UNUSED);
}

/* Writes the merges, "left right" or in newer files ["left", "right"]. */
static void put_merges(struct gguf_writer *g, const json_t *root) {
	const json_t *merges = json_object_get(json_object_get(root, "model"), "merges");
	size_t i;
	json_t *merge;
	gguf_put_array(g, "tokenizer.ggml.merges", GGUF_STRING, json_array_size(merges));
	json_array_foreach(merges, i, merge) {
		if (json_is_string(merge)) {
			gguf_add_string(g, json_string_value(merge), json_string_length(merge));
			continue;
		}
		json_t *both = json_sprintf("%s %s", json_string_value(json_array_get(merge, 0)),
									json_string_value(json_array_get(merge, 1)));
		gguf_add_string(g, json_string_value(both), json_string_length(both));
		g->failed = g->failed || !both;
		json_decref(both);
	}
}

/* Writes begin and end tokens, or that there are none, or readers would assume token 0. */
static void put_specials(struct gguf_writer *g, const struct tokenizer *t, const struct hf_origin *origin) {
	uint32_t end = tokenizer_end_of_text(t), begin = tokenizer_special(t, "<|begin_of_text|>");
	if (begin == TOKENIZER_NO_TOKEN)
		begin = end;
	begin = hf_origin_token(origin, "bos_token_id", begin);
	end = hf_origin_token(origin, "eos_token_id", end);
	if (begin == TOKENIZER_NO_TOKEN && end == TOKENIZER_NO_TOKEN) {
		gguf_put_bool(g, "tokenizer.ggml.add_bos_token", false);
		gguf_put_bool(g, "tokenizer.ggml.add_eos_token", false);
		return;
	}
	if (begin != TOKENIZER_NO_TOKEN)
		gguf_put_u32(g, "tokenizer.ggml.bos_token_id", begin);
	if (end != TOKENIZER_NO_TOKEN)
		gguf_put_u32(g, "tokenizer.ggml.eos_token_id", end);
}

static enum rv_err put_all(struct gguf_writer *g, const char *name, const json_t *root, const struct tokenizer *t,
						   uint32_t vocab, const struct hf_origin *origin, struct rv_errtext *et) {
	const char *pre = pre_tokenizer_name(root);
	if (!pre)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "%s: its pre-tokenizer is neither GPT-2's nor Llama 3's: llama.cpp has no name for it", name);
	if (tokenizer_normalizes(t))
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "%s: it normalizes text, which llama.cpp does not: tokens would differ; use --format hf", name);
	struct token *tokens = calloc(vocab, sizeof *tokens);
	if (!tokens)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory for %u tokens", name, vocab);
	collect_tokens(root, tokens);
	gguf_put_string(g, "tokenizer.ggml.model", "gpt2");
	gguf_put_string(g, "tokenizer.ggml.pre", pre);
	put_tokens(g, tokens, vocab);
	put_merges(g, root);
	put_specials(g, t, origin);
	free(tokens);
	return RV_OK;
}

static enum rv_err put_text(struct gguf_writer *g, const char *name, const uint8_t *text, size_t n, uint32_t vocab,
							const struct hf_origin *origin, struct rv_errtext *et) {
	struct tokenizer *t = NULL;
	RV_TRY(hf_tokenizer_load(name, text, n, vocab, &t, et));
	json_t *root = json_loadb((const char *)text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	enum rv_err e =
		root ? put_all(g, name, root, t, vocab, origin, et) : rv_fail(et, RV_E_NOMEM, "no memory for %s", name);
	json_decref(root);
	tokenizer_free(t);
	return e;
}

enum rv_err gguf_put_tokenizer(struct gguf_writer *g, const char *tokenizer_file, uint32_t vocab,
							   const struct hf_origin *origin, struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	if (tokenizer_file) {
		RV_TRY(rv_file_read(tokenizer_file, TOKENIZER_MAX_FILE_BYTES, &text, &n, et));
	} else {
		text = (uint8_t *)hf_tokenizer_of_bytes();
		if (!text)
			return rv_fail(et, RV_E_NOMEM, "no memory for a tokenizer of bytes");
		n = strlen((char *)text);
	}
	enum rv_err e = put_text(g, tokenizer_file ? tokenizer_file : "bytes", text, n, vocab, origin, et);
	free(text);
	return e;
}
