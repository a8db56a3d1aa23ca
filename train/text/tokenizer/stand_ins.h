/* stand_ins.h: makes PCRE2 classify characters by Unicode 16, as tokenizers and tiktoken do, with
 * any version of Unicode from 14 on that PCRE2 was built with.
 *
 * A character is *settled* if its general category is the same in Unicode 14 and 16. While a text
 * is matched, a settled character stands in for every other one, assigned or not: of the same
 * category in Unicode 16 and as long in UTF-8, so that offsets stay the same. U+180E, a space for
 * PCRE2 and none for Unicode since 6.3, has a stand-in too. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_STAND_INS_H
#define RV_TRAIN_TEXT_TOKENIZER_STAND_INS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether `c` is not settled. */
bool stand_ins_has(uint32_t c);

/* Returns the offset of the first unsettled character in `text` (well-formed UTF-8), or n. */
size_t stand_ins_find(const uint8_t *text, size_t n);

/* Replaces, in place, every character of `text` that is not settled. */
void stand_ins_put(uint8_t *text, size_t n);

#endif
