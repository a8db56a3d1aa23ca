/* identity.c: Ed25519 key files, signatures, signed documents and member tickets
 * (net/identity.h). */
#include "net/identity.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(((struct identity *)0)->secret) == crypto_sign_SECRETKEYBYTES, "libsodium's layout");
_Static_assert((int)NET_KEY_BYTES == (int)crypto_sign_PUBLICKEYBYTES, "Ed25519");
_Static_assert((int)NET_SIG_BYTES == (int)crypto_sign_BYTES, "Ed25519");
_Static_assert((int)IDENTITY_SEED_BYTES == (int)crypto_sign_SEEDBYTES, "Ed25519");

enum { DOMAIN_MAX_BYTES = 32, TICKET_SIGNED_BYTES = 15 + NET_RUN_ID_BYTES + 4 + NET_KEY_BYTES };
static const char ticket_domain[] = "rivulet member";
_Static_assert(sizeof ticket_domain == 15, "see TICKET_SIGNED_BYTES");

void identity_of_seed(const uint8_t seed[IDENTITY_SEED_BYTES], struct identity *out) {
	int rc = crypto_sign_seed_keypair(out->key, out->secret, seed);
	RV_ASSERT(rc == 0);
}

void identity_release(struct identity *id) {
	sodium_memzero(id, sizeof *id);
}

/* A secret that others can read is no secret: refuse it rather than go on quietly. */
static enum rv_err check_secret_file(int fd, const char *path, size_t n, struct rv_errtext *et) {
	struct stat st;
	if (fstat(fd, &st) != 0)
		return rv_fail_errno(et, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_CORRUPT, "%s: not a regular file", path);
	if ((st.st_mode & 077) != 0)
		return rv_fail(et, RV_E_AUTH,
					   "%s: mode %04o lets others at a secret key: chmod 600 it, or delete it if it leaked", path,
					   (unsigned)st.st_mode & 07777);
	if (st.st_size != (off_t)n)
		return rv_fail(et, RV_E_CORRUPT, "%s: %lld bytes, this key file has %zu", path, (long long)st.st_size, n);
	return RV_OK;
}

enum rv_err identity_read_secret(const char *path, uint8_t *out, size_t n, struct rv_errtext *et) {
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s", path);
	enum rv_err e = check_secret_file(fd, path, n, et);
	if (e == RV_OK && rv_read_at(fd, out, n, 0) != (ssize_t)n)
		e = rv_fail(et, RV_E_IO, "%s: cannot read %zu bytes", path, n);
	close(fd);
	return e;
}

enum rv_err identity_load(const char *path, struct identity *out, struct rv_errtext *et) {
	uint8_t seed[IDENTITY_SEED_BYTES];
	RV_TRY(identity_read_secret(path, seed, sizeof seed, et));
	identity_of_seed(seed, out);
	sodium_memzero(seed, sizeof seed);
	return RV_OK;
}

enum rv_err identity_make(struct identity *out, struct rv_errtext *et) {
	uint8_t seed[IDENTITY_SEED_BYTES];
	if (sodium_init() < 0)
		return rv_fail(et, RV_E_UNSUPPORTED, "no source of random numbers: no key was made");
	randombytes_buf(seed, sizeof seed);
	identity_of_seed(seed, out);
	sodium_memzero(seed, sizeof seed);
	return RV_OK;
}

enum rv_err identity_load_or_create(const char *path, struct identity *out, bool *created, struct rv_errtext *et) {
	if (created != NULL)
		*created = false;
	enum rv_err e = identity_load(path, out, et);
	if (e != RV_E_NOTFOUND)
		return e;
	RV_TRY(identity_make(out, et));
	e = rv_file_write_atomic(path, out->secret, IDENTITY_SEED_BYTES, 0600, et);
	if (e != RV_OK)
		identity_release(out);
	else if (created != NULL)
		*created = true;
	return e;
}

void identity_sign(const struct identity *id, const void *message, size_t n, uint8_t signature[NET_SIG_BYTES]) {
	RV_ASSERT(memchr(message, 0, n < DOMAIN_MAX_BYTES ? n : DOMAIN_MAX_BYTES) != NULL);
	int rc = crypto_sign_detached(signature, NULL, message, n, id->secret);
	RV_ASSERT(rc == 0);
}

bool identity_verify(const uint8_t key[NET_KEY_BYTES], const void *message, size_t n,
					 const uint8_t signature[NET_SIG_BYTES]) {
	return crypto_sign_verify_detached(signature, message, n, key) == 0;
}

/* domain NUL | data, in fresh memory. */
static uint8_t *with_domain(const char *domain, const void *data, size_t n, size_t *out_bytes) {
	size_t domain_bytes = strlen(domain) + 1;
	RV_ASSERT(domain_bytes <= DOMAIN_MAX_BYTES);
	uint8_t *message = malloc(domain_bytes + n);
	if (message == NULL)
		return NULL;
	memcpy(message, domain, domain_bytes);
	memcpy(message + domain_bytes, data, n);
	*out_bytes = domain_bytes + n;
	return message;
}

enum rv_err signed_make(const struct identity *id, const char *domain, const void *data, size_t n, uint8_t *out,
						struct rv_errtext *et) {
	RV_ASSERT(n <= NET_MAX_DOCUMENT_BYTES);
	size_t message_bytes;
	uint8_t *message = with_domain(domain, data, n, &message_bytes);
	if (message == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory to sign %zu bytes", n);
	identity_sign(id, message, message_bytes, out);
	memcpy(out + NET_SIG_BYTES, data, n);
	free(message);
	return RV_OK;
}

enum rv_err signed_open(const uint8_t key[NET_KEY_BYTES], const char *domain, const void *p, size_t n,
						const uint8_t **data, size_t *data_bytes, struct rv_errtext *et) {
	if (n < NET_SIG_BYTES || n > IDENTITY_SIGNED_MAX_BYTES)
		return rv_fail(et, RV_E_INVALID, "signed document: %zu bytes, must be %d to %d", n, NET_SIG_BYTES,
					   IDENTITY_SIGNED_MAX_BYTES);
	const uint8_t *signature = p;
	const uint8_t *bytes = signature + NET_SIG_BYTES;
	size_t message_bytes;
	uint8_t *message = with_domain(domain, bytes, n - NET_SIG_BYTES, &message_bytes);
	if (message == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory to check a signature over %zu bytes", n);
	bool good = identity_verify(key, message, message_bytes, signature);
	free(message);
	if (!good)
		return rv_fail(et, RV_E_AUTH, "signed document: the signature is not that of the key that serves the run");
	*data = bytes;
	*data_bytes = n - NET_SIG_BYTES;
	return RV_OK;
}

static void ticket_message(const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t member, const uint8_t key[NET_KEY_BYTES],
						   uint8_t out[TICKET_SIGNED_BYTES]) {
	struct rv_writer w = rv_writer_of(out, TICKET_SIGNED_BYTES);
	rv_write_bytes(&w, ticket_domain, sizeof ticket_domain);
	rv_write_bytes(&w, run_id, NET_RUN_ID_BYTES);
	rv_write_u32(&w, member);
	rv_write_bytes(&w, key, NET_KEY_BYTES);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == TICKET_SIGNED_BYTES);
}

void ticket_sign(const struct identity *run, const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t member,
				 const uint8_t key[NET_KEY_BYTES], uint8_t ticket[NET_SIG_BYTES]) {
	uint8_t message[TICKET_SIGNED_BYTES];
	ticket_message(run_id, member, key, message);
	identity_sign(run, message, sizeof message, ticket);
}

bool ticket_verify(const uint8_t serving_key[NET_KEY_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t member,
				   const uint8_t key[NET_KEY_BYTES], const uint8_t ticket[NET_SIG_BYTES]) {
	uint8_t message[TICKET_SIGNED_BYTES];
	ticket_message(run_id, member, key, message);
	return identity_verify(serving_key, message, sizeof message, ticket);
}

enum { PAIR_SIGNED_BYTES = 13 + NET_RUN_ID_BYTES + 8 + 8 + 2 * (4 + NET_KEY_BYTES) };
static const char pair_domain[] = "rivulet pair";
_Static_assert(sizeof pair_domain == 13, "see PAIR_SIGNED_BYTES");

static void pair_message(const uint8_t run_id[NET_RUN_ID_BYTES], uint64_t term, uint64_t round,
						 const struct pair_end *a, const struct pair_end *b, uint8_t out[PAIR_SIGNED_BYTES]) {
	const struct pair_end *ends[] = {a->member < b->member ? a : b, a->member < b->member ? b : a};
	struct rv_writer w = rv_writer_of(out, PAIR_SIGNED_BYTES);
	rv_write_bytes(&w, pair_domain, sizeof pair_domain);
	rv_write_bytes(&w, run_id, NET_RUN_ID_BYTES);
	rv_write_u64(&w, term);
	rv_write_u64(&w, round);
	for (int i = 0; i < 2; i++) {
		rv_write_u32(&w, ends[i]->member);
		rv_write_bytes(&w, ends[i]->key, NET_KEY_BYTES);
	}
	RV_ASSERT(!w.failed && rv_writer_len(&w) == PAIR_SIGNED_BYTES);
}

void pair_ticket_sign(const struct identity *run, const uint8_t run_id[NET_RUN_ID_BYTES], uint64_t term, uint64_t round,
					  const struct pair_end *a, const struct pair_end *b, uint8_t ticket[NET_SIG_BYTES]) {
	uint8_t message[PAIR_SIGNED_BYTES];
	RV_ASSERT(a->member != b->member);
	pair_message(run_id, term, round, a, b, message);
	identity_sign(run, message, sizeof message, ticket);
}

bool pair_ticket_verify(const uint8_t serving_key[NET_KEY_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES], uint64_t term,
						uint64_t round, const struct pair_end *a, const struct pair_end *b,
						const uint8_t ticket[NET_SIG_BYTES]) {
	uint8_t message[PAIR_SIGNED_BYTES];
	pair_message(run_id, term, round, a, b, message);
	return a->member != b->member && identity_verify(serving_key, message, sizeof message, ticket);
}

enum { SEEN_SIGNED_MAX_BYTES = 13 + NET_RUN_ID_BYTES + NET_KEY_BYTES + NET_ADDR_BYTES + 8 };
static const char seen_domain[] = "rivulet seen";
_Static_assert(sizeof seen_domain == 13, "see SEEN_SIGNED_MAX_BYTES");

/* Returns the length of the message. */
static size_t seen_message(const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t key[NET_KEY_BYTES], const char *addr,
						   uint64_t unix_s, uint8_t out[SEEN_SIGNED_MAX_BYTES]) {
	size_t addr_bytes = strlen(addr);
	struct rv_writer w = rv_writer_of(out, SEEN_SIGNED_MAX_BYTES);
	RV_ASSERT(addr_bytes < NET_ADDR_BYTES);
	rv_write_bytes(&w, seen_domain, sizeof seen_domain);
	rv_write_bytes(&w, run_id, NET_RUN_ID_BYTES);
	rv_write_bytes(&w, key, NET_KEY_BYTES);
	rv_write_bytes(&w, addr, addr_bytes);
	rv_write_u64(&w, unix_s);
	RV_ASSERT(!w.failed);
	return rv_writer_len(&w);
}

void seen_sign(const struct identity *relay, const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t key[NET_KEY_BYTES],
			   const char *addr, uint64_t unix_s, uint8_t signature[NET_SIG_BYTES]) {
	uint8_t message[SEEN_SIGNED_MAX_BYTES];
	identity_sign(relay, message, seen_message(run_id, key, addr, unix_s, message), signature);
}

bool seen_verify(const uint8_t relay_key[NET_KEY_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES],
				 const uint8_t key[NET_KEY_BYTES], const char *addr, uint64_t unix_s,
				 const uint8_t signature[NET_SIG_BYTES]) {
	uint8_t message[SEEN_SIGNED_MAX_BYTES];
	return identity_verify(relay_key, message, seen_message(run_id, key, addr, unix_s, message), signature);
}

void identity_short(const uint8_t key[NET_KEY_BYTES], char out[IDENTITY_SHORT_BYTES]) {
	rv_hex_encode(key, (IDENTITY_SHORT_BYTES - 1) / 2, out);
}
