/* utf8.h: UTF-8 by RFC 3629: no surrogates, nothing overlong or above U+10FFFF. Pure functions. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_UTF8_H
#define RV_TRAIN_TEXT_TOKENIZER_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the well-formed character at text[0, n). Returns its length in bytes, 0 if none. */
size_t utf8_decode(const uint8_t *text, size_t n, uint32_t *code_point);
/* Writes a character, no surrogate (asserted). Returns its length in bytes, 1 to 4. */
size_t utf8_encode(uint32_t code_point, uint8_t out[static 4]);
/* Returns how many bytes at the start are well-formed characters. */
size_t utf8_valid_prefix(const uint8_t *text, size_t n);
/* Returns how many bytes at the start begin no well-formed character. */
size_t utf8_invalid_prefix(const uint8_t *text, size_t n);

#endif
