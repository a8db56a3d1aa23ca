/* hf_keys.h: the keys of config.json without influence on what a family computes. Any other unread
 * key is refused by name, as it may change the mathematics. */
#ifndef RV_TRAIN_MODEL_HF_KEYS_H
#define RV_TRAIN_MODEL_HF_KEYS_H

#include "train/model/hf_fields.h"

#include <stdbool.h>

/* Key of config.json for the training context, if the model can read a longer one. */
#define HF_CONTEXT_KEY "rivulet_context"

/* Reports whether transformers (2.11 to 5.23) or tools of the hub write `key` and a decoder
 * computes the same with any value: generation, training, classification, origin. */
bool hf_key_is_harmless(const char *key);

/* Returns why a key is refused, and the next step. */
const char *hf_key_why(const char *key);

/* Ends a family's reading: refuses values that no decoder of ours computes, then unread keys. */
void hf_check_rest(struct hf_fields *f);

#endif
