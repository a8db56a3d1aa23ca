/* hf_keys.h: the keys of config.json that no family computes with. Whatever else a family does not read is refused by
 * name: it may change the mathematics. */
#ifndef RV_TRAIN_MODEL_HF_KEYS_H
#define RV_TRAIN_MODEL_HF_KEYS_H

#include "train/model/hf_fields.h"

#include <stdbool.h>

/* The key of config.json for the context that a model was trained on, where it can read more than that. */
#define HF_CONTEXT_KEY "rivulet_context"

/* Written by transformers (2.11 to 5.23) or by tools of the hub, and without influence on what a decoder computes: how
 * text is generated, how a model is trained or classifies, where it comes from. */
bool hf_key_is_harmless(const char *key);

/* Why a key that is not harmless is refused, and what to do. */
const char *hf_key_why(const char *key);

/* Ends a family's reading of config.json: refuses the values that no decoder of ours computes, then the keys that were
 * not read. */
void hf_check_rest(struct hf_fields *f);

#endif
