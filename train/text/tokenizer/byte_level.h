/* byte_level.h: bytes as printable characters, as byte-level BPE files write them (GPT-2, Radford
 * et al. 2019).
 *
 * A byte that is a printable Latin-1 character stands for itself; the 68 others (controls, space,
 * 0x7f-0xa0, 0xad) are the characters from U+0100 on, in order. A space is U+0120. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_BYTE_LEVEL_H
#define RV_TRAIN_TEXT_TOKENIZER_BYTE_LEVEL_H

#include <stddef.h>
#include <stdint.h>

uint32_t byte_level_char(uint8_t byte);
/* Returns the byte that a character stands for, or -1. */
int byte_level_byte(uint32_t code_point);
/* Converts byte-level text to bytes. `out` has room for n bytes. Returns how many it wrote, or -1
 * if a character stands for no byte. */
int64_t byte_level_decode(const char *text, size_t n, uint8_t *out);
/* Converts bytes to byte-level UTF-8, without a NUL, of at most 2 n bytes. Returns its length. */
size_t byte_level_encode(const uint8_t *bytes, size_t n, char *out);

#endif
