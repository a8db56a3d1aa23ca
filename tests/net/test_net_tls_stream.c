/* TLS over byte buffers: any cut of the bytes will do, every changed byte is noticed, and nothing grows without end. */
#include "net/mesh/tls_stream.h"

#include "net/tls.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct pair {
	struct tls_stream_kind kind[2];
	struct tls_stream end[2];
};

static void pair_init(struct pair *p) {
	for (int i = 0; i < 2; i++) {
		uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)(i + 1)};
		struct identity id;
		SSL_CTX *ctx;
		identity_of_seed(seed, &id);
		assert_int_equal(tls_context_new(&id, TLS_CLIENTS_MUST, &ctx, NULL), RV_OK);
		assert_int_equal(tls_stream_kind_init(&p->kind[i], ctx, NULL), RV_OK);
		assert_int_equal(tls_stream_init(&p->end[i], &p->kind[i], i == 0, NULL), RV_OK);
	}
}

static void pair_release(struct pair *p) {
	for (int i = 0; i < 2; i++) {
		tls_stream_release(&p->end[i]);
		tls_stream_kind_release(&p->kind[i]);
	}
}

/* Hands what `from` has to say to the other end, `step` bytes at a time; what comes out goes to `out` (or a handshake
 * goes on). */
static enum tls_io carry(struct pair *p, int from, size_t step, uint8_t *out, size_t *out_bytes) {
	struct tls_stream *a = &p->end[from], *b = &p->end[1 - from];
	enum tls_io io = TLS_IO_WAIT;
	while (tls_stream_pending(a) > 0 && (io == TLS_IO_WAIT || io == TLS_IO_DONE)) {
		size_t n = tls_stream_pending(a) < step ? tls_stream_pending(a) : step;
		tls_stream_feed(b, a->out + a->out_at, n);
		if (out == NULL) {
			io = tls_stream_handshake(b, NULL);
		} else {
			size_t got;
			while ((io = tls_stream_read(b, out + *out_bytes, 1 << 16, &got, NULL)) == TLS_IO_DONE)
				*out_bytes += got;
		}
		b->in_bytes = 0;
		tls_stream_sent(a, n);
	}
	return io;
}

static void shake_hands(struct pair *p, size_t step) {
	assert_int_equal(tls_stream_handshake(&p->end[0], NULL), TLS_IO_WAIT);
	assert_int_equal(carry(p, 0, step, NULL, NULL), TLS_IO_WAIT);
	assert_int_equal(carry(p, 1, step, NULL, NULL), TLS_IO_DONE);
	assert_int_equal(carry(p, 0, step, NULL, NULL), TLS_IO_DONE);
	assert_int_equal(tls_stream_pending(&p->end[1]), 0); /* no tickets */
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
		assert_int_equal(tls_stream_write(&p.end[1], data, sizeof data, NULL), TLS_IO_DONE);
		assert_int_equal(carry(&p, 1, steps[i], out, &got), TLS_IO_WAIT);
		assert_int_equal(got, sizeof data);
		assert_memory_equal(out, data, sizeof data);
		for (int k = 0; k < 2; k++)
			assert_true(tls_stream_exporter(&p.end[k], "EXPORTER-test", exporter[k], 32));
		assert_memory_equal(exporter[0], exporter[1], 32);
		assert_true(tls_peer_key(p.end[0].ssl, key));
		tls_stream_close(&p.end[0]);
		assert_int_equal(carry(&p, 0, steps[i], out, &got), TLS_IO_CLOSED);
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
		assert_int_equal(tls_stream_write(&p.end[0], "twenty bytes of text", 20, NULL), TLS_IO_DONE);
		p.end[0].out[p.end[0].out_at + at] ^= 1;
		assert_int_equal(carry(&p, 0, 1 << 20, out, &got), TLS_IO_FAULT);
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
	assert_int_equal(tls_stream_write(&p.end[0], data, sizeof data, NULL), TLS_IO_DONE);
	plain = tls_stream_pending(&p.end[0]);
	p.end[0].key_max_bytes = 1000;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(tls_stream_write(&p.end[0], data, sizeof data, NULL), TLS_IO_DONE);
		sent = tls_stream_pending(&p.end[0]);
	}
	assert_in_range(sent - 101 * plain, 9 * 26, 11 * 28); /* ten records of a KeyUpdate */
	assert_int_equal(carry(&p, 0, 777, out, &got), TLS_IO_WAIT);
	assert_int_equal(got, 101 * sizeof data);
	for (size_t i = 0; i < got; i++)
		assert_int_equal(out[i], 0x3c);
	pair_release(&p);
}

/* Key updates that want an answer, from a side that never takes one: the answers are bounded, then the stream ends. */
static void unread_answers_are_bounded(void **state) {
	(void)state;
	struct pair p;
	static uint8_t out[1 << 17];
	enum tls_io io = TLS_IO_WAIT;
	pair_init(&p);
	shake_hands(&p, 1 << 20);
	/* Nearly full already, so that thousands of updates are not needed. */
	static uint8_t bulk[TLS_STREAM_OUT_MAX_BYTES - 4096];
	assert_int_equal(tls_stream_write(&p.end[1], bulk, sizeof bulk, NULL), TLS_IO_DONE);
	for (int i = 0; i < 10000 && io == TLS_IO_WAIT; i++) {
		size_t got = 0;
		assert_int_equal(SSL_key_update(p.end[0].ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(tls_stream_handshake(&p.end[0], NULL), TLS_IO_DONE);
		assert_int_equal(tls_stream_write(&p.end[0], "x", 1, NULL), TLS_IO_DONE);
		io = carry(&p, 0, 1 << 20, out, &got);
		assert_true(tls_stream_pending(&p.end[1]) <= TLS_STREAM_OUT_MAX_BYTES);
	}
	assert_int_equal(io, TLS_IO_FAULT);
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
