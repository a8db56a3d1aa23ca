/* TLS over byte buffers: any cut of the bytes will do, every changed byte is noticed, and nothing
 * grows without end. */
#include "net/mesh/stream.h"

#include "net/tls.h"
#include "tests/common/check.h"

#include <openssl/ssl.h>
#include <string.h>

struct pair {
	void *shared[2];
	struct stream end[2];
};

static void pair_init(struct pair *p) {
	for (int i = 0; i < 2; i++) {
		uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)(i + 1)};
		struct identity id;
		identity_of_seed(seed, &id);
		assert_int_equal(tls_stream.setup(&id, &p->shared[i], NULL), RV_OK);
		assert_int_equal(tls_stream.open(&p->end[i], p->shared[i], i == 0, NULL), RV_OK);
	}
}

static void pair_release(struct pair *p) {
	for (int i = 0; i < 2; i++) {
		tls_stream.release(&p->end[i]);
		tls_stream.teardown(p->shared[i]);
	}
}

/* Hands what `from` has to say to the other end, `step` bytes at a time; what comes out goes to
 * `out` (or a handshake goes on). */
static enum stream_io carry(struct pair *p, int from, size_t step, uint8_t *out, size_t *out_bytes) {
	struct stream *a = &p->end[from], *b = &p->end[1 - from];
	enum stream_io io = STREAM_WAIT;
	while (stream_pending(a) > 0 && (io == STREAM_WAIT || io == STREAM_DONE)) {
		size_t n = stream_pending(a) < step ? stream_pending(a) : step;
		stream_feed(b, a->out + a->out_at, n);
		if (out == NULL) {
			io = tls_stream.handshake(b, NULL);
		} else {
			size_t got;
			while ((io = tls_stream.read(b, out + *out_bytes, 1 << 16, &got, NULL)) == STREAM_DONE)
				*out_bytes += got;
		}
		b->in_bytes = 0;
		stream_sent(a, n);
	}
	return io;
}

static void shake_hands(struct pair *p, size_t step) {
	assert_int_equal(tls_stream.handshake(&p->end[0], NULL), STREAM_WAIT);
	assert_int_equal(carry(p, 0, step, NULL, NULL), STREAM_WAIT);
	assert_int_equal(carry(p, 1, step, NULL, NULL), STREAM_DONE);
	assert_int_equal(carry(p, 0, step, NULL, NULL), STREAM_DONE);
	assert_int_equal(stream_pending(&p->end[1]), 0); /* no tickets */
}

static void any_cut_will_do(void **state) {
	(void)state;
	static const size_t steps[] = {1, 7, 1000, 1 << 20};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct pair p;
		uint8_t data[40000], out[40000 + (1 << 16)], exporter[2][32], key[NET_KEY_BYTES];
		size_t got = 0;
		pair_init(&p);
		shake_hands(&p, steps[i]);
		for (size_t k = 0; k < sizeof data; k++)
			data[k] = (uint8_t)(k * 11);
		assert_int_equal(tls_stream.write(&p.end[1], data, sizeof data, NULL), STREAM_DONE);
		assert_int_equal(carry(&p, 1, steps[i], out, &got), STREAM_WAIT);
		assert_int_equal(got, sizeof data);
		assert_memory_equal(out, data, sizeof data);
		for (int k = 0; k < 2; k++)
			assert_true(tls_stream.exporter(&p.end[k], "EXPORTER-test", exporter[k], 32));
		assert_memory_equal(exporter[0], exporter[1], 32);
		assert_true(tls_peer_key(p.end[0].self, key));
		tls_stream.end(&p.end[0]);
		assert_int_equal(carry(&p, 0, steps[i], out, &got), STREAM_CLOSED);
		pair_release(&p);
	}
}

static void changed_byte_is_a_fault(void **state) {
	(void)state;
	for (size_t at = 5; at < 40; at += 7) {
		struct pair p;
		uint8_t out[1 << 17];
		size_t got = 0;
		pair_init(&p);
		shake_hands(&p, 1 << 20);
		assert_int_equal(tls_stream.write(&p.end[0], "twenty bytes of text", 20, NULL), STREAM_DONE);
		p.end[0].out[p.end[0].out_at + at] ^= 1;
		assert_int_equal(carry(&p, 0, 1 << 20, out, &got), STREAM_FAULT);
		assert_int_equal(got, 0);
		pair_release(&p);
	}
}

/* Every 1,000 bytes a new key, in one direction; the reader follows. */
static void keys_are_renewed(void **state) {
	(void)state;
	struct pair p;
	static uint8_t out[1 << 18];
	uint8_t data[100];
	size_t got = 0, sent = 0, plain;
	pair_init(&p);
	shake_hands(&p, 1 << 20);
	memset(data, 0x3c, sizeof data);
	assert_int_equal(tls_stream.write(&p.end[0], data, sizeof data, NULL), STREAM_DONE);
	plain = stream_pending(&p.end[0]);
	p.end[0].key_max_bytes = 1000;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(tls_stream.write(&p.end[0], data, sizeof data, NULL), STREAM_DONE);
		sent = stream_pending(&p.end[0]);
	}
	assert_in_range(sent - 101 * plain, 9 * 26, 11 * 28); /* ten records of a KeyUpdate */
	assert_int_equal(carry(&p, 0, 777, out, &got), STREAM_WAIT);
	assert_int_equal(got, 101 * sizeof data);
	for (size_t i = 0; i < got; i++)
		assert_int_equal(out[i], 0x3c);
	pair_release(&p);
}

/* Key updates that want an answer, from a side that never takes one: the answers are bounded, then
 * the stream ends. */
static void unread_answers_are_bounded(void **state) {
	(void)state;
	struct pair p;
	static uint8_t out[1 << 17];
	enum stream_io io = STREAM_WAIT;
	pair_init(&p);
	shake_hands(&p, 1 << 20);
	/* Nearly full already, so that thousands of updates are not needed. */
	static uint8_t bulk[STREAM_OUT_MAX_BYTES - 4096];
	assert_int_equal(tls_stream.write(&p.end[1], bulk, sizeof bulk, NULL), STREAM_DONE);
	for (int i = 0; i < 10000 && io == STREAM_WAIT; i++) {
		size_t got = 0;
		assert_int_equal(SSL_key_update(p.end[0].self, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(tls_stream.handshake(&p.end[0], NULL), STREAM_DONE);
		assert_int_equal(tls_stream.write(&p.end[0], "x", 1, NULL), STREAM_DONE);
		io = carry(&p, 0, 1 << 20, out, &got);
		assert_true(stream_pending(&p.end[1]) <= STREAM_OUT_MAX_BYTES);
	}
	assert_int_equal(io, STREAM_FAULT);
	assert_true(p.end[1].out_full);
	pair_release(&p);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_cut_will_do),
		cmocka_unit_test(changed_byte_is_a_fault),
		cmocka_unit_test(keys_are_renewed),
		cmocka_unit_test(unread_answers_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
