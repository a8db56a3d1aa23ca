/* sim_stream.c: the simulator's stream (net/mesh/stream.h): each side states its key and a number
 * that it never states again, and then everything goes as it is. What TLS proves is taken for
 * granted: nobody states another's key. */
#include "sim.h"

#include "base/assert.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

struct opening {
	uint8_t key[NET_KEY_BYTES];
	uint64_t number;
};

struct shared {
	uint8_t key[NET_KEY_BYTES];
	uint64_t *next_number; /* the universe's */
};

struct secured {
	bool dialer, has_sent;
	struct opening mine, theirs;
	size_t got; /* of `theirs` */
};

static enum rv_err setup(const struct identity *id, void **shared, struct rv_errtext *et) {
	struct shared *k = sim_alloc(sizeof *k);
	const struct sim_identity *of = (const struct sim_identity *)(const void *)id;
	(void)et;
	memcpy(k->key, id->key, sizeof k->key);
	k->next_number = of->next_number;
	*shared = k;
	return RV_OK;
}

static void teardown(void *shared) {
	free(shared);
}

static enum rv_err open_stream(struct stream *s, void *shared, bool dialer, struct rv_errtext *et) {
	const struct shared *k = shared;
	struct secured *c = sim_alloc(sizeof *c);
	(void)et;
	c->dialer = dialer;
	memcpy(c->mine.key, k->key, sizeof c->mine.key);
	c->mine.number = ++*k->next_number;
	*s = (struct stream){.self = c};
	return RV_OK;
}

static void release_stream(struct stream *s) {
	free(s->self);
	free(s->out);
	*s = (struct stream){0};
}

static bool state(struct stream *s) {
	struct secured *c = s->self;
	bool ok = c->has_sent || stream_put(s, &c->mine, sizeof c->mine);
	c->has_sent = true;
	return ok;
}

/* As in TLS the listener speaks second. */
static enum stream_io handshake(struct stream *s, struct rv_errtext *et) {
	struct secured *c = s->self;
	if (c->dialer && !state(s))
		return rv_fail(et, RV_E_NOMEM, "no room for an opening") == RV_OK ? STREAM_DONE : STREAM_FAULT;
	c->got += stream_take(s, (uint8_t *)&c->theirs + c->got, sizeof c->theirs - c->got);
	if (c->got < sizeof c->theirs)
		return STREAM_WAIT;
	return state(s) ? STREAM_DONE : STREAM_FAULT;
}

static enum rv_err secured(struct stream *s, uint8_t key[NET_KEY_BYTES], struct rv_errtext *et) {
	const struct secured *c = s->self;
	(void)et;
	memcpy(key, c->theirs.key, NET_KEY_BYTES);
	return RV_OK;
}

static enum stream_io read_stream(struct stream *s, void *out, size_t cap, size_t *got, struct rv_errtext *et) {
	(void)et;
	*got = stream_take(s, out, cap);
	return *got > 0 ? STREAM_DONE : STREAM_WAIT;
}

static enum stream_io write_stream(struct stream *s, const void *data, size_t n, struct rv_errtext *et) {
	if (stream_put(s, data, n))
		return STREAM_DONE;
	rv_fail(et, RV_E_PROTOCOL, "it makes us answer but does not read the answers");
	return STREAM_FAULT;
}

static void end_stream(struct stream *s) {
	(void)s; /* the pipe's end says it */
}

static bool exporter(const struct stream *s, const char *label, uint8_t *out, size_t n) {
	const struct secured *c = s->self;
	const struct opening both[2] = {c->dialer ? c->mine : c->theirs, c->dialer ? c->theirs : c->mine};
	const struct rv_hash hash = rv_hash_of(both, sizeof both);
	(void)label;
	RV_ASSERT(n <= sizeof hash.b);
	memcpy(out, hash.b, n);
	return true;
}

/* ---- signatures ---- Ed25519 costs more than all the rest of a universe. By the linker (--wrap) a
 * signature is a hash of the key and what is signed: nobody here makes one with another's key. */

static void seal(const uint8_t *key, const uint8_t *message, size_t n, uint8_t signature[NET_SIG_BYTES]) {
	uint8_t sealed[NET_KEY_BYTES + 256];
	RV_ASSERT(n <= sizeof sealed - NET_KEY_BYTES);
	memcpy(sealed, key, NET_KEY_BYTES);
	memcpy(sealed + NET_KEY_BYTES, message, n);
	const struct rv_hash hash = rv_hash_of(sealed, NET_KEY_BYTES + n);
	memset(signature, 0, NET_SIG_BYTES);
	memcpy(signature, hash.b, sizeof hash.b);
}

int __wrap_crypto_sign_detached(uint8_t *signature, unsigned long long *bytes, const uint8_t *message,
								unsigned long long n, const uint8_t *secret);
int __wrap_crypto_sign_verify_detached(const uint8_t *signature, const uint8_t *message, unsigned long long n,
									   const uint8_t *key);

int __wrap_crypto_sign_detached(uint8_t *signature, unsigned long long *bytes, const uint8_t *message,
								unsigned long long n, const uint8_t *secret) {
	RV_ASSERT(bytes == NULL);
	seal(secret + IDENTITY_SEED_BYTES, message, n, signature);
	return 0;
}

int __wrap_crypto_sign_verify_detached(const uint8_t *signature, const uint8_t *message, unsigned long long n,
									   const uint8_t *key) {
	uint8_t right[NET_SIG_BYTES];
	seal(key, message, n, right);
	return memcmp(right, signature, sizeof right) == 0 ? 0 : -1;
}

const struct stream_ops sim_stream = {.setup = setup,
									  .teardown = teardown,
									  .open = open_stream,
									  .release = release_stream,
									  .handshake = handshake,
									  .secured = secured,
									  .read = read_stream,
									  .write = write_stream,
									  .end = end_stream,
									  .exporter = exporter};
