/* stand_in_tables.h: made by make_stand_ins.py; do not edit. Inner part of stand_ins.c. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_STAND_IN_TABLES_H
#define RV_TRAIN_TEXT_TOKENIZER_STAND_IN_TABLES_H

#include <stdint.h>

enum { STAND_INS = 859, STAND_IN_PAGE_WORDS = 136 };

struct stand_in {
	uint32_t first, last, instead;
};

/* Ascending. */
extern const struct stand_in stand_ins[STAND_INS];
/* One bit for 256 code points: are there any among them? */
extern const uint32_t stand_in_pages[STAND_IN_PAGE_WORDS];

#endif
