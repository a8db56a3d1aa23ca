/* huggingface_steps.h: the "normalizer" and the "pre_tokenizer" of a tokenizer.json. Inner part of kind_huggingface.c.
 */
#ifndef RV_TRAIN_TEXT_TOKENIZER_HUGGINGFACE_STEPS_H
#define RV_TRAIN_TEXT_TOKENIZER_HUGGINGFACE_STEPS_H

#include "train/text/tokenizer/pretokenizer.h"

#include <jansson.h>

/* Adds its steps: ByteLevel, Split (behaviour Isolated, or Removed with invert: both keep matches whole), Digits, and
 * Sequence of these. RV_E_UNSUPPORTED names another type or setting; RV_E_INVALID what is malformed, or when no
 * ByteLevel is among them: then the tokens are no byte-level text. */
enum rv_err huggingface_add_steps(struct pretokenizer *p, const json_t *pre_tokenizer, struct rv_errtext *et);

/* *nfc: it is NFC (alone or in a Sequence); false when there is none. RV_E_UNSUPPORTED names another. */
enum rv_err huggingface_read_normalizer(const json_t *normalizer, bool *nfc, struct rv_errtext *et);

#endif
