/* nfc_tables.h: canonical decompositions and combining classes, what tokenizers 0.23.3 knows of Unicode, without
 * Hangul, which is computed. Made by make_nfc_tables.py; do not edit. Inner part of nfc.c. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_NFC_TABLES_H
#define RV_TRAIN_TEXT_TOKENIZER_NFC_TABLES_H

#include <stdint.h>

enum { NFC_PARTS = 2061, NFC_PAIRS = 941, NFC_CLASSES = 333, NFC_JOINING = 248 };

struct nfc_parts {
	uint32_t whole, part[2]; /* part[1] is 0 when there is one only */
};

struct nfc_range {
	uint32_t first, last, value;
};

/* By `whole`. */
extern const struct nfc_parts nfc_parts[NFC_PARTS];
/* Indices of those that are composed again, by part[0], then part[1]. */
extern const uint16_t nfc_pairs[NFC_PAIRS];
/* Combining classes other than 0. */
extern const struct nfc_range nfc_classes[NFC_CLASSES];
/* Characters that may change, or may join what is before them. */
extern const struct nfc_range nfc_joining[NFC_JOINING];

#endif
