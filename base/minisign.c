/* minisign.c: see minisign.h. */
#include "base/minisign.h"

#include "base/assert.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	ALGORITHM_BYTES = 2,
	HASH_BYTES = crypto_generichash_BYTES_MAX,
	CHECKSUM_BYTES = 32,
	SALT_BYTES = 32,
	SIGNATURE_BYTES = crypto_sign_BYTES
};

static const char of_keys[] = "Ed", of_hashes[] = "ED", without_password[ALGORITHM_BYTES] = {0, 0};
static const char of_checksums[] = "B2", untrusted[] = "untrusted comment: ", trusted[] = "trusted comment: ";

/* What the lines of base64 hold, byte for byte. */
struct public_bytes {
	uint8_t algorithm[ALGORITHM_BYTES], id[RV_MINISIGN_ID_BYTES], key[RV_MINISIGN_KEY_BYTES];
};
struct secret_bytes {
	uint8_t algorithm[ALGORITHM_BYTES], password_algorithm[ALGORITHM_BYTES], checksum_algorithm[ALGORITHM_BYTES];
	uint8_t salt[SALT_BYTES], opslimit[8], memlimit[8];
	uint8_t id[RV_MINISIGN_ID_BYTES], key[RV_MINISIGN_SECRET_BYTES], checksum[CHECKSUM_BYTES];
};
struct signature_bytes {
	uint8_t algorithm[ALGORITHM_BYTES], id[RV_MINISIGN_ID_BYTES], signature[SIGNATURE_BYTES];
};

/* ---- lines ---- */

static void print_base64(const void *data, size_t n, char *out) {
	(void)sodium_bin2base64(out, RV_MINISIGN_TEXT_BYTES, data, n, sodium_base64_VARIANT_ORIGINAL);
}

/* Takes the next line, without its end, and moves *text behind it. Returns its bytes. */
static size_t take_line(const char **text, const char **line) {
	*line = *text;
	size_t n = strcspn(*text, "\r\n");
	*text += n;
	*text += **text == '\r';
	*text += **text == '\n';
	return n;
}

/* Reads a line that is base64 of exactly n bytes. */
static bool take_base64(const char **text, void *out, size_t n) {
	const char *line;
	size_t got, length = take_line(text, &line);
	return sodium_base642bin(out, n, line, length, NULL, &got, NULL, sodium_base64_VARIANT_ORIGINAL) == 0 && got == n;
}

static bool begins_with(const char *text, const char *start) {
	return strncmp(text, start, strlen(start)) == 0;
}

/* ---- keys ---- */

enum rv_err rv_minisign_new(struct rv_minisign_secret *out, struct rv_errtext *et) {
	if (sodium_init() < 0)
		return rv_fail(et, RV_E_UNSUPPORTED, "libsodium does not start");
	randombytes_buf(out->public.id, sizeof out->public.id);
	(void)crypto_sign_keypair(out->public.key, out->key);
	return RV_OK;
}

void rv_minisign_print_id(const struct rv_minisign_public *k, char out[2 * RV_MINISIGN_ID_BYTES + 1]) {
	for (int i = 0; i < RV_MINISIGN_ID_BYTES; i++)
		(void)snprintf(out + 2 * i, 3, "%02X", k->id[RV_MINISIGN_ID_BYTES - 1 - i]);
}

void rv_minisign_print_public(const struct rv_minisign_public *k, char out[RV_MINISIGN_TEXT_BYTES]) {
	struct public_bytes b;
	char id[2 * RV_MINISIGN_ID_BYTES + 1], base64[RV_MINISIGN_TEXT_BYTES];
	memcpy(b.algorithm, of_keys, sizeof b.algorithm);
	memcpy(b.id, k->id, sizeof b.id);
	memcpy(b.key, k->key, sizeof b.key);
	rv_minisign_print_id(k, id);
	print_base64(&b, sizeof b, base64);
	(void)snprintf(out, RV_MINISIGN_TEXT_BYTES, "%sminisign public key %s\n%.256s\n", untrusted, id, base64);
}

void rv_minisign_print_secret(const struct rv_minisign_secret *k, char out[RV_MINISIGN_TEXT_BYTES]) {
	struct secret_bytes b = {0};
	char base64[RV_MINISIGN_TEXT_BYTES];
	memcpy(b.algorithm, of_keys, sizeof b.algorithm);
	memcpy(b.password_algorithm, without_password, sizeof b.password_algorithm);
	memcpy(b.checksum_algorithm, of_checksums, sizeof b.checksum_algorithm);
	memcpy(b.id, k->public.id, sizeof b.id);
	memcpy(b.key, k->key, sizeof b.key);
	print_base64(&b, sizeof b, base64);
	(void)snprintf(out, RV_MINISIGN_TEXT_BYTES, "%sminisign secret key, without a password\n%.512s\n", untrusted,
				   base64);
	sodium_memzero(&b, sizeof b);
	sodium_memzero(base64, sizeof base64);
}

enum rv_err rv_minisign_read_public(const char *text, struct rv_minisign_public *out, struct rv_errtext *et) {
	struct public_bytes b;
	const char *line;
	if (begins_with(text, untrusted))
		(void)take_line(&text, &line);
	if (!take_base64(&text, &b, sizeof b) || memcmp(b.algorithm, of_keys, sizeof b.algorithm) != 0)
		return rv_fail(et, RV_E_INVALID, "not a public key of minisign (56 characters that begin with RW)");
	memcpy(out->id, b.id, sizeof out->id);
	memcpy(out->key, b.key, sizeof out->key);
	return RV_OK;
}

/* Checks what the bytes of a secret key say of themselves, and sets its public half. The checksum
 * counts where there is a password only (minisign writes zeros): a key is whole if its seed gives
 * the rest of it. */
static enum rv_err check_secret(const struct secret_bytes *b, struct rv_minisign_secret *out, struct rv_errtext *et) {
	if (memcmp(b->algorithm, of_keys, sizeof b->algorithm) != 0 ||
		memcmp(b->checksum_algorithm, of_checksums, sizeof b->checksum_algorithm) != 0)
		return rv_fail(et, RV_E_INVALID, "a secret key of another algorithm than Ed25519 with BLAKE2b");
	if (memcmp(b->password_algorithm, without_password, sizeof b->password_algorithm) != 0)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "a password protects this key: sign with minisign itself (minisign -S -m SHA256SUMS)");
	memcpy(out->public.id, b->id, sizeof b->id);
	(void)crypto_sign_seed_keypair(out->public.key, out->key, b->key);
	return sodium_memcmp(out->key, b->key, sizeof b->key) == 0
			   ? RV_OK
			   : rv_fail(et, RV_E_CORRUPT, "the secret key is damaged: its halves do not belong together");
}

enum rv_err rv_minisign_read_secret(const char *text, struct rv_minisign_secret *out, struct rv_errtext *et) {
	struct secret_bytes b;
	const char *line;
	if (!begins_with(text, untrusted))
		return rv_fail(et, RV_E_INVALID, "not a secret key of minisign: it begins with \"%s\"", untrusted);
	(void)take_line(&text, &line);
	if (!take_base64(&text, &b, sizeof b))
		return rv_fail(et, RV_E_INVALID, "not a secret key of minisign: its second line must be %zu bytes in base64",
					   sizeof b);
	enum rv_err e = check_secret(&b, out, et);
	sodium_memzero(&b, sizeof b);
	return e;
}

/* ---- signatures ---- */

/* The bytes that the second signature covers: the first one, then the trusted comment. */
struct vouched {
	uint8_t bytes[SIGNATURE_BYTES + RV_MINISIGN_COMMENT_BYTES];
	size_t n;
};

static void vouch_for(const uint8_t signature[SIGNATURE_BYTES], const char *comment, size_t n, struct vouched *out) {
	memcpy(out->bytes, signature, SIGNATURE_BYTES);
	memcpy(out->bytes + SIGNATURE_BYTES, comment, n);
	out->n = SIGNATURE_BYTES + n;
}

void rv_minisign_sign(const struct rv_minisign_secret *k, const void *data, size_t n, const char *comment,
					  char out[RV_MINISIGN_TEXT_BYTES]) {
	struct signature_bytes b;
	struct vouched both;
	uint8_t hash[HASH_BYTES], second[SIGNATURE_BYTES];
	char base64[RV_MINISIGN_TEXT_BYTES], base64_second[RV_MINISIGN_TEXT_BYTES];
	RV_ASSERT(strlen(comment) < RV_MINISIGN_COMMENT_BYTES && !strpbrk(comment, "\r\n"));
	(void)crypto_generichash(hash, sizeof hash, data, n, NULL, 0);
	memcpy(b.algorithm, of_hashes, sizeof b.algorithm);
	memcpy(b.id, k->public.id, sizeof b.id);
	(void)crypto_sign_detached(b.signature, NULL, hash, sizeof hash, k->key);
	vouch_for(b.signature, comment, strlen(comment), &both);
	(void)crypto_sign_detached(second, NULL, both.bytes, both.n, k->key);
	print_base64(&b, sizeof b, base64);
	print_base64(second, sizeof second, base64_second);
	(void)snprintf(out, RV_MINISIGN_TEXT_BYTES, "%ssignature of a release of Rivulet\n%.256s\n%s%s\n%.256s\n",
				   untrusted, base64, trusted, comment, base64_second);
}

/* The parts of a signature's text. */
struct parsed {
	struct signature_bytes first;
	const char *comment; /* not terminated */
	size_t comment_bytes;
	uint8_t second[SIGNATURE_BYTES];
};

static bool parse_signature(const char *text, struct parsed *out) {
	const char *line;
	if (!begins_with(text, untrusted))
		return false;
	(void)take_line(&text, &line);
	if (!take_base64(&text, &out->first, sizeof out->first) || !begins_with(text, trusted))
		return false;
	size_t n = take_line(&text, &line);
	out->comment = line + strlen(trusted);
	out->comment_bytes = n - strlen(trusted);
	return out->comment_bytes < RV_MINISIGN_COMMENT_BYTES && take_base64(&text, out->second, sizeof out->second);
}

enum rv_err rv_minisign_verify(const struct rv_minisign_public *k, const void *data, size_t n, const char *signature,
							   char comment[RV_MINISIGN_COMMENT_BYTES], struct rv_errtext *et) {
	struct parsed s;
	struct vouched both;
	uint8_t hash[HASH_BYTES];
	char id[2 * RV_MINISIGN_ID_BYTES + 1], other[2 * RV_MINISIGN_ID_BYTES + 1];
	if (!parse_signature(signature, &s) || memcmp(s.first.algorithm, of_hashes, sizeof s.first.algorithm) != 0)
		return rv_fail(et, RV_E_INVALID, "not a signature of minisign's present format (four lines, algorithm ED)");
	if (memcmp(s.first.id, k->id, sizeof k->id) != 0) {
		struct rv_minisign_public signer = {{0}, {0}};
		memcpy(signer.id, s.first.id, sizeof signer.id);
		rv_minisign_print_id(&signer, other);
		rv_minisign_print_id(k, id);
		return rv_fail(et, RV_E_AUTH, "signed by the key %s, not by %s", other, id);
	}
	(void)crypto_generichash(hash, sizeof hash, data, n, NULL, 0);
	if (crypto_sign_verify_detached(s.first.signature, hash, sizeof hash, k->key) != 0)
		return rv_fail(et, RV_E_AUTH, "the signature does not fit: the file was changed");
	vouch_for(s.first.signature, s.comment, s.comment_bytes, &both);
	if (crypto_sign_verify_detached(s.second, both.bytes, both.n, k->key) != 0)
		return rv_fail(et, RV_E_AUTH, "the signature does not fit to its trusted comment: the comment was changed");
	memcpy(comment, s.comment, s.comment_bytes);
	comment[s.comment_bytes] = '\0';
	return RV_OK;
}
