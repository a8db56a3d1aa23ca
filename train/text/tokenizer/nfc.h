/* nfc.h: Unicode Normalization Form C (UAX #15) as the package `tokenizers` 0.23 computes it, by
 * Unicode 9. Characters assigned later stay as they are and nothing joins them, with any
 * libunistring whose Unicode is 9 or later: its version does not change the tokens. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_NFC_H
#define RV_TRAIN_TEXT_TOKENIZER_NFC_H

#include "train/text/tokenizer/buffers.h"

/* Appends the NFC of text[0, n), well-formed UTF-8, to `out`, in O(n log n). Any thread. Returns
 * RV_E_NOMEM; `out` may then hold a part. */
enum rv_err nfc_append(const uint8_t *text, size_t n, struct byte_list *out, struct rv_errtext *et);

#endif
