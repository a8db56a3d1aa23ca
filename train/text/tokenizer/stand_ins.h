/* stand_ins.h: makes PCRE2 class characters as Unicode 16 does, as tokenizers and tiktoken do, whatever version of
 * Unicode it was built with (14 or later).
 *
 * A character is *settled* when its general category is the same in Unicode 14 and 16. For every other one, assigned or
 * not, another stands in while a text is matched: settled, of the category that Unicode 16 has, and as long in UTF-8,
 * so that offsets are the same. U+180E, a space for PCRE2 and none for Unicode since 6.3, has one too. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_STAND_INS_H
#define RV_TRAIN_TEXT_TOKENIZER_STAND_INS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether `c` is not settled. */
bool stand_ins_has(uint32_t c);

/* The offset of the first character that is not settled in `text`, which is well-formed UTF-8; n: there is none. */
size_t stand_ins_find(const uint8_t *text, size_t n);

/* Replaces, in place, every character of `text` that is not settled. */
void stand_ins_put(uint8_t *text, size_t n);

#endif
