/* huggingface_json.c: see huggingface_json.h. */
#include "train/text/tokenizer/huggingface_json.h"

#include <jansson.h>

json_t *byte_level_json(void) {
	return json_pack("{ss sb sb sb}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1);
}

char *huggingface_json(json_t *vocab, json_t *merges, json_t *added, json_t *post) {
	json_t *root = json_pack("{ss sn sn so sn so so so s{ss sn sn sn sn sb sb sb so so}}", "version", "1.0",
							 "truncation", "padding", "added_tokens", added, "normalizer", "pre_tokenizer",
							 byte_level_json(), "post_processor", post, "decoder", byte_level_json(), "model", "type",
							 "BPE", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
							 "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges", merges);
	char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	json_decref(root);
	return text;
}
