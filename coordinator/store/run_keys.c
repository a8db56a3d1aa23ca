/* run_keys.c: see run_keys.h. */
#include "coordinator/store/run_keys.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/file.h"

#include <sodium.h>
#include <string.h>

enum { SECRET_MODE = 0600 };

enum rv_err run_keys_make(const struct identity *root, const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t serial,
						  struct run_keys *out, struct rv_errtext *et) {
	RV_TRY(identity_make(&out->serving, et));
	memcpy(out->root, root->key, NET_KEY_BYTES);
	serving_cert_make(root, run_id, serial, out->serving.key, &out->cert);
	return RV_OK;
}

void run_keys_encode(const struct run_keys *k, uint8_t out[RUN_KEYS_BYTES]) {
	uint8_t cert[SERVING_CERT_BYTES];
	struct rv_writer w = rv_writer_of(out, RUN_KEYS_BYTES);
	serving_cert_encode(&k->cert, cert);
	rv_write_bytes(&w, k->serving.secret, IDENTITY_SEED_BYTES);
	rv_write_bytes(&w, k->root, NET_KEY_BYTES);
	rv_write_bytes(&w, cert, sizeof cert);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == RUN_KEYS_BYTES);
}

void run_keys_decode(const uint8_t in[RUN_KEYS_BYTES], struct run_keys *out) {
	uint8_t seed[IDENTITY_SEED_BYTES], cert[SERVING_CERT_BYTES];
	struct rv_reader r = rv_reader_of(in, RUN_KEYS_BYTES);
	rv_read_copy(&r, seed, sizeof seed);
	rv_read_copy(&r, out->root, NET_KEY_BYTES);
	rv_read_copy(&r, cert, sizeof cert);
	RV_ASSERT(rv_reader_done(&r));
	identity_of_seed(seed, &out->serving);
	serving_cert_decode(cert, &out->cert);
	sodium_memzero(seed, sizeof seed);
}

enum rv_err run_keys_load(const char *path, struct run_keys *out, struct rv_errtext *et) {
	uint8_t bytes[RUN_KEYS_BYTES];
	RV_TRY(identity_read_secret(path, bytes, sizeof bytes, et));
	run_keys_decode(bytes, out);
	sodium_memzero(bytes, sizeof bytes);
	if (memcmp(out->serving.key, out->cert.key, NET_KEY_BYTES) == 0)
		return RV_OK;
	run_keys_release(out);
	return rv_fail(et, RV_E_CORRUPT, "%s: damaged: its certificate is of another key", path);
}

enum rv_err run_keys_store(const char *path, const struct run_keys *k, struct rv_errtext *et) {
	uint8_t bytes[RUN_KEYS_BYTES];
	run_keys_encode(k, bytes);
	enum rv_err e = rv_file_write_atomic(path, bytes, sizeof bytes, SECRET_MODE, et);
	sodium_memzero(bytes, sizeof bytes);
	return e;
}

enum rv_err run_keys_check(const struct run_keys *k, const uint8_t run_id[NET_RUN_ID_BYTES], const char *path,
						   struct rv_errtext *et) {
	if (serving_cert_verify(k->root, run_id, &k->cert))
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT,
				   "%s: its root key has not certified its serving key for this run: it is another run's, or damaged",
				   path);
}

void run_keys_release(struct run_keys *k) {
	identity_release(&k->serving);
}
