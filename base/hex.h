/* hex.h: bytes as text: lower-case hex, and base64url without padding (RFC 4648 section 5) for invite links. */
#ifndef RV_BASE_HEX_H
#define RV_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes 2n digits and a NUL; `out` has 2n + 1 bytes. */
void rv_hex_encode(const uint8_t *data, size_t n, char *out);
/* Exactly n bytes from exactly 2n digits (either case); false and `out` unspecified otherwise. */
bool rv_hex_decode(const char *text, uint8_t *out, size_t n);
/* `out` has (n * 4 + 2) / 3 + 1 bytes. */
void rv_base64url_encode(const uint8_t *data, size_t n, char *out);
/* Exactly n bytes, canonical (unused bits zero); the text must end there. */
bool rv_base64url_decode(const char *text, size_t text_len, uint8_t *out, size_t n);

#endif
