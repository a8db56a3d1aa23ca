/* serving_cert.c: see serving_cert.h. */
#include "net/serving_cert.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

static const char domain[] = "rivulet serving";
enum { SIGNED_BYTES = sizeof domain + NET_RUN_ID_BYTES + 4 + NET_KEY_BYTES };

static void message_of(const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t serial, const uint8_t key[NET_KEY_BYTES],
					   uint8_t out[SIGNED_BYTES]) {
	struct rv_writer w = rv_writer_of(out, SIGNED_BYTES);
	rv_write_bytes(&w, domain, sizeof domain);
	rv_write_bytes(&w, run_id, NET_RUN_ID_BYTES);
	rv_write_u32(&w, serial);
	rv_write_bytes(&w, key, NET_KEY_BYTES);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == SIGNED_BYTES);
}

void serving_cert_make(const struct identity *root, const uint8_t run_id[NET_RUN_ID_BYTES], uint32_t serial,
					   const uint8_t key[NET_KEY_BYTES], struct serving_cert *out) {
	uint8_t message[SIGNED_BYTES];
	RV_ASSERT(serial > 0);
	out->serial = serial;
	memcpy(out->key, key, NET_KEY_BYTES);
	message_of(run_id, serial, key, message);
	identity_sign(root, message, sizeof message, out->signature);
}

bool serving_cert_verify(const uint8_t root[NET_KEY_BYTES], const uint8_t run_id[NET_RUN_ID_BYTES],
						 const struct serving_cert *c) {
	uint8_t message[SIGNED_BYTES];
	message_of(run_id, c->serial, c->key, message);
	return c->serial > 0 && identity_verify(root, message, sizeof message, c->signature);
}

void serving_cert_encode(const struct serving_cert *c, uint8_t out[SERVING_CERT_BYTES]) {
	struct rv_writer w = rv_writer_of(out, SERVING_CERT_BYTES);
	rv_write_u32(&w, c->serial);
	rv_write_bytes(&w, c->key, NET_KEY_BYTES);
	rv_write_bytes(&w, c->signature, NET_SIG_BYTES);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == SERVING_CERT_BYTES);
}

void serving_cert_decode(const uint8_t in[SERVING_CERT_BYTES], struct serving_cert *out) {
	struct rv_reader r = rv_reader_of(in, SERVING_CERT_BYTES);
	out->serial = rv_read_u32(&r);
	rv_read_copy(&r, out->key, NET_KEY_BYTES);
	rv_read_copy(&r, out->signature, NET_SIG_BYTES);
	RV_ASSERT(rv_reader_done(&r));
}

struct run_trust run_trust_of(const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t root[NET_KEY_BYTES]) {
	struct run_trust t = {.cert = {.serial = 0}};
	memcpy(t.run_id, run_id, NET_RUN_ID_BYTES);
	memcpy(t.root, root, NET_KEY_BYTES);
	memcpy(t.cert.key, root, NET_KEY_BYTES);
	return t;
}

const uint8_t *run_trust_key(const struct run_trust *t) {
	return t->cert.key;
}

enum rv_err run_trust_take(struct run_trust *t, const struct serving_cert *c, struct rv_errtext *et) {
	if (!serving_cert_verify(t->root, t->run_id, c))
		return rv_fail(et, RV_E_AUTH, "serving certificate %u: the run's root key did not sign it", c->serial);
	if (c->serial < t->cert.serial || (c->serial == t->cert.serial && memcmp(c->key, t->cert.key, NET_KEY_BYTES) != 0))
		return rv_fail(et, RV_E_AUTH, "serving certificate %u: the operator has replaced it; this program knows %u",
					   c->serial, t->cert.serial);
	t->cert = *c;
	return RV_OK;
}
