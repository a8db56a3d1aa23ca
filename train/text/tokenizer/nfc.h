/* nfc.h: Unicode Normalization Form C (UAX #15) as the package `tokenizers` 0.23 computes it: by Unicode 9. A character
 * assigned later stays as it is, and nothing joins it, whatever version of Unicode libunistring has (9 or later): the
 * tokens of a text do not depend on it. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_NFC_H
#define RV_TRAIN_TEXT_TOKENIZER_NFC_H

#include "train/text/tokenizer/buffers.h"

/* Appends the NFC of text[0, n), well-formed UTF-8, to `out`. Takes time in proportion to n log n. Any thread.
 * RV_E_NOMEM: `out` may hold a part. */
enum rv_err nfc_append(const uint8_t *text, size_t n, struct byte_list *out, struct rv_errtext *et);

#endif
