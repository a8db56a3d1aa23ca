/* huggingface_steps.h: normalizer and pre_tokenizer of tokenizer.json; part of
 * kind_huggingface.c. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_HUGGINGFACE_STEPS_H
#define RV_TRAIN_TEXT_TOKENIZER_HUGGINGFACE_STEPS_H

#include "train/text/tokenizer/pretokenizer.h"

#include <jansson.h>

/* Adds the steps of `pre_tokenizer`: ByteLevel, Split (behaviour Isolated, or Removed with invert:
 * both keep matches whole), Digits, and a Sequence of these. Returns RV_E_UNSUPPORTED for anything
 * else or without ByteLevel, RV_E_INVALID for a malformed step, and what pretokenizer_add
 * returns. */
enum rv_err huggingface_add_steps(struct pretokenizer *p, const json_t *pre_tokenizer, struct rv_errtext *et);

/* Sets *nfc: whether `normalizer` is NFC (alone or in a Sequence). Returns RV_E_UNSUPPORTED for
 * another. */
enum rv_err huggingface_read_normalizer(const json_t *normalizer, bool *nfc, struct rv_errtext *et);

#endif
