/* nfc.h: Unicode Normalization Form C (UAX #15): characters and their marks composed, in one order. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_NFC_H
#define RV_TRAIN_TEXT_TOKENIZER_NFC_H

#include "train/text/tokenizer/buffers.h"

#include <stdbool.h>

/* Working memory of one thread. Zero-initialise. */
struct nfc_scratch {
	uint32_t *chars; /* of a character and its marks, decomposed */
	uint32_t *sorted;
	size_t n, cap;
};

/* Appends the NFC of well-formed UTF-8. Linear in n. RV_E_NOMEM. */
enum rv_err nfc_append(struct nfc_scratch *s, const uint8_t *text, size_t n, struct byte_list *out,
					   struct rv_errtext *et);
void nfc_scratch_release(struct nfc_scratch *s);

#endif
