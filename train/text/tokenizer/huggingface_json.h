/* huggingface_json.h: writes tokenizer.json, of a byte-level BPE. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_HUGGINGFACE_JSON_H
#define RV_TRAIN_TEXT_TOKENIZER_HUGGINGFACE_JSON_H

struct json_t; /* jansson */

/* Returns GPT-2's step in the file: a pre-tokenizer, decoder and post-processor; NULL without
 * memory. */
struct json_t *byte_level_json(void);
/* Returns the file's text, which the caller frees, or NULL without memory. Releases the values,
 * each of which is NULL if building it failed: the vocabulary by text, the merges "left right", the
 * added tokens, and the post-processor (json_null: none). */
char *huggingface_json(struct json_t *vocab, struct json_t *merges, struct json_t *added, struct json_t *post);

#endif
