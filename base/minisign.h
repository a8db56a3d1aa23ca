/* minisign.h: keys and signatures in the format of minisign (https://jedisct1.github.io/minisign/),
 * by libsodium: what anybody can check with that program, this one can, and the reverse.
 *
 * A signature is detached text of four lines: a comment that nobody vouches for, the Ed25519
 * signature of the BLAKE2b-512 hash of the file, a trusted comment, and the signature of both.
 * Signatures without the hash ("legacy", minisign before 0.6) are neither made nor accepted. */
#ifndef RV_BASE_MINISIGN_H
#define RV_BASE_MINISIGN_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
	RV_MINISIGN_ID_BYTES = 8,
	RV_MINISIGN_KEY_BYTES = 32,
	RV_MINISIGN_SECRET_BYTES = 64,
	RV_MINISIGN_COMMENT_BYTES = 512, /* of a trusted comment, its NUL included */
	RV_MINISIGN_TEXT_BYTES = 2048    /* of any of the texts below, its NUL included */
};

struct rv_minisign_public {
	uint8_t id[RV_MINISIGN_ID_BYTES];
	uint8_t key[RV_MINISIGN_KEY_BYTES];
};

struct rv_minisign_secret {
	struct rv_minisign_public public;
	uint8_t key[RV_MINISIGN_SECRET_BYTES];
};

/* Makes a key of fresh random bytes. RV_E_UNSUPPORTED: libsodium does not start. */
enum rv_err rv_minisign_new(struct rv_minisign_secret *out, struct rv_errtext *et);

/* Writes a key as a file holds it. */
void rv_minisign_print_public(const struct rv_minisign_public *k, char out[RV_MINISIGN_TEXT_BYTES]);
void rv_minisign_print_secret(const struct rv_minisign_secret *k, char out[RV_MINISIGN_TEXT_BYTES]);
/* Writes the identifier as minisign shows it: 16 hex digits, highest byte first. */
void rv_minisign_print_id(const struct rv_minisign_public *k, char out[2 * RV_MINISIGN_ID_BYTES + 1]);

/* Reads a public key: its file's text, or the one line of base64 alone. RV_E_INVALID. */
enum rv_err rv_minisign_read_public(const char *text, struct rv_minisign_public *out, struct rv_errtext *et);
/* Reads a secret key's file. RV_E_INVALID; RV_E_UNSUPPORTED: a password protects it; RV_E_CORRUPT:
 * its parts do not belong together. */
enum rv_err rv_minisign_read_secret(const char *text, struct rv_minisign_secret *out, struct rv_errtext *et);

/* Signs n bytes. `comment` is one line, at most RV_MINISIGN_COMMENT_BYTES - 1 bytes (asserted). */
void rv_minisign_sign(const struct rv_minisign_secret *k, const void *data, size_t n, const char *comment,
					  char out[RV_MINISIGN_TEXT_BYTES]);
/* Checks a signature, and sets `comment` to the trusted one. RV_E_INVALID: it is no signature of
 * this format; RV_E_AUTH: it is another key's, or does not fit to the bytes or to the comment. */
enum rv_err rv_minisign_verify(const struct rv_minisign_public *k, const void *data, size_t n, const char *signature,
							   char comment[RV_MINISIGN_COMMENT_BYTES], struct rv_errtext *et);

#endif
