/* hex.h: bytes as text: lower-case hex, and base64url without padding (RFC 4648 section 5) for
 * invite links. */
#ifndef RV_BASE_HEX_H
#define RV_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes 2n digits and a NUL to `out` (2n + 1 bytes). */
void rv_hex_encode(const uint8_t *data, size_t n, char *out);
/* Reads exactly n bytes from exactly 2n digits (either case). Returns false otherwise, with `out`
 * unspecified. */
bool rv_hex_decode(const char *text, uint8_t *out, size_t n);
/* Writes text and a NUL to `out` ((n * 4 + 2) / 3 + 1 bytes). */
void rv_base64url_encode(const uint8_t *data, size_t n, char *out);
/* Reads exactly n bytes from canonical text (unused bits zero) of `text_len` characters. Returns
 * false otherwise. */
bool rv_base64url_decode(const char *text, size_t text_len, uint8_t *out, size_t n);

#endif
