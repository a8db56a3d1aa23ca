/* test_worker_state_pieces.c: pieces tile the payload, and a manifest lets no bit through. */
#include "tests/common/check.h"
#include "worker/state/state_pieces.h"

#include <stdlib.h>
#include <string.h>

static struct global_config config(size_t n, size_t chunk_elems, const struct codec *codec) {
	struct global_config c = {
		.n = n, .codec = codec, .optimizer = &outer_nesterov, .params = {.lr = 0.7f, .momentum = 0.9f}};
	c.chunks = chunking_of(n, chunk_elems);
	c.run_hash = rv_hash_of("a run", 5);
	return c;
}

static void assert_tiled(const struct global_config *c, enum state_kind kind, uint64_t round) {
	size_t next = 0, bytes;
	for (uint32_t i = 0; i < state_pieces(c, kind, round); i++) {
		assert_int_equal(state_piece_at(c, kind, round, i, &bytes), next);
		assert_true(bytes > 0 && bytes <= STATE_PIECE_MAX_BYTES && bytes <= state_max_piece_bytes(c));
		next += bytes;
	}
	assert_int_equal(next, state_payload_bytes(c, kind, round));
	assert_true(state_pieces(c, kind, round) <= state_max_pieces(c));
	assert_true(state_manifest_hashes(c, kind, round) <= state_max_manifest_hashes(c));
}

static void assert_chunks_are_found(const struct global_config *c, uint64_t round) {
	const struct chunking chunks = global_round_chunks(c, round);
	for (uint32_t i = 0; i < chunks.n_chunks; i++) {
		size_t at, bytes;
		const uint32_t piece = state_piece_of_chunk(c, round, i, &at);
		const size_t piece_at = state_piece_at(c, STATE_KIND_LOG, round, piece, &bytes);
		assert_int_equal(piece_at + at, chunking_offset_bytes(&chunks, c->codec, i));
		assert_true(at + c->codec->encoded_bytes(c->codec, chunking_len(&chunks, i)) <= bytes);
	}
}

static void pieces_tile_the_payload(void **state) {
	static const size_t sizes[] = {1, 255, 256, 65535, 65536, 65537, 131072, 300001, 1000003};
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		const struct codec *const codecs[] = {&codec_int8, &codec_int4, &codec_fp32};
		for (int k = 0; k < 3; k++) {
			struct global_config small = config(sizes[i], 512, codecs[k]), large = config(sizes[i], 65536, codecs[k]);
			assert_tiled(&small, STATE_KIND_LOG, 5);
			assert_tiled(&large, STATE_KIND_LOG, 5);
			assert_chunks_are_found(&small, 5);
			assert_chunks_are_found(&large, 5);
			assert_tiled(&small, STATE_KIND_SNAPSHOT, 5);
		}
	}
}

static void a_log_piece_holds_as_many_chunks_as_fit(void **state) {
	(void)state;
	struct global_config c = config(1 << 20, 65536, &codec_int8); /* 66,560 bytes a chunk: 3 fit */
	assert_int_equal(state_pieces(&c, STATE_KIND_LOG, 0), 6);
	assert_int_equal(state_manifest_hashes(&c, STATE_KIND_LOG, 0), 16);
	c = config(1 << 18, 65536, &codec_fp32); /* 262,144: exactly one */
	assert_int_equal(state_pieces(&c, STATE_KIND_LOG, 0), 4);
}

/* Four fragments: 10 layers of 6 chunks dealt to three, and what is around them. */
static struct global_config streaming(const struct codec *codec) {
	enum { CHUNK = 4096, BEGIN = 9 * CHUNK, LAYER = 6 * CHUNK, LAYERS = 10 };
	const struct fragment_layers layers = {.begin = BEGIN, .layer_elems = LAYER, .n = LAYERS};
	struct global_config c = config(BEGIN + LAYERS * LAYER + 700, CHUNK, codec);
	assert_int_equal(fragments_make(&c.chunks, 4, &layers, &c.fragments, NULL), RV_OK);
	return c;
}

/* A log entry holds what its round exchanged, and the entries of P rounds hold the vector. */
static void a_log_entry_is_of_its_rounds_fragment(void **state) {
	const struct codec *const codecs[] = {&codec_int8, &codec_fp32};
	static const uint32_t chunks[] = {24, 18, 18, 10};
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct global_config c = streaming(codecs[k]);
		size_t all = 0;
		for (uint64_t round = 0; round < 8; round++) {
			assert_tiled(&c, STATE_KIND_LOG, round);
			assert_chunks_are_found(&c, round);
			assert_tiled(&c, STATE_KIND_SNAPSHOT, round);
			assert_int_equal(state_manifest_hashes(&c, STATE_KIND_LOG, round), chunks[round % 4]);
			all += state_payload_bytes(&c, STATE_KIND_LOG, round);
		}
		assert_int_equal(all, 2 * chunking_total_bytes(&c.chunks, c.codec));
		assert_int_equal(state_logs_per_snapshot(&c), k == 0 ? 31 : 8); /* a snapshot is theta and momentum */
		assert_int_equal(state_max_manifest_hashes(&c), 24);
	}
}

struct made {
	struct global_config c;
	struct state_id id;
	uint8_t *payload;
	struct rv_hash *manifest;
};

static void make(struct made *m, enum state_kind kind, uint32_t fragments) {
	enum { N = 150001, LAYER = 25 * 1024 };
	const struct fragment_layers layers = {.begin = LAYER, .layer_elems = LAYER, .n = 4};
	struct global_state g;
	float *theta = calloc(N, sizeof *theta), *local = calloc(N, sizeof *local);
	for (int i = 0; i < N; i++)
		theta[i] = (float)(i % 101) * 0.01f;
	m->c = config(N, 1024, &codec_int8);
	assert_int_equal(fragments_make(&m->c.chunks, fragments, &layers, &m->c.fragments, NULL), RV_OK);
	assert_int_equal(global_init(&g, &m->c, theta, NULL), RV_OK);
	m->id = (struct state_id){.kind = kind, .round = kind == STATE_KIND_LOG ? 7 : 0, .chain = g.chain};
	g.round = m->id.round;
	m->payload = calloc(1, state_payload_bytes(&m->c, kind, m->id.round));
	if (kind == STATE_KIND_SNAPSHOT)
		memcpy(m->payload, theta, sizeof *theta * N);
	else
		assert_int_equal(global_encode_delta(&g, local, m->payload, NULL), RV_OK);
	m->id.expect = kind == STATE_KIND_SNAPSHOT ? global_full_hash(&g) : global_digest(&g, m->id.round, m->payload);
	m->manifest = calloc(state_manifest_hashes(&m->c, kind, m->id.round), sizeof *m->manifest);
	state_manifest_of(&m->c, kind, m->id.round, m->payload, m->manifest);
	global_release(&g);
	free(theta);
	free(local);
}

static void made_release(struct made *m) {
	free(m->payload);
	free(m->manifest);
}

static void check_manifest(enum state_kind kind, uint32_t fragments) {
	struct rv_errtext et;
	struct made m;
	make(&m, kind, fragments);
	assert_int_equal(state_manifest_check(&m.c, &m.id, m.manifest, &et), RV_OK);
	m.manifest[state_manifest_hashes(&m.c, kind, m.id.round) - 1].b[31] ^= 1;
	assert_int_equal(state_manifest_check(&m.c, &m.id, m.manifest, &et), RV_E_CORRUPT);
	m.manifest[state_manifest_hashes(&m.c, kind, m.id.round) - 1].b[31] ^= 1;
	m.id.round += fragments; /* as many hashes, and another round */
	assert_int_equal(state_manifest_check(&m.c, &m.id, m.manifest, &et), RV_E_CORRUPT);
	made_release(&m);
}

static void a_manifest_makes_the_committed_hash(void **state) {
	(void)state;
	for (enum state_kind kind = STATE_KIND_SNAPSHOT; kind <= STATE_KIND_LOG; kind++)
		for (uint32_t fragments = 1; fragments <= 3; fragments++)
			check_manifest(kind, fragments);
}

static void flip_bits(enum state_kind kind, uint32_t fragments) {
	struct rv_errtext et;
	struct made m;
	make(&m, kind, fragments);
	for (uint32_t i = 0; i < state_pieces(&m.c, kind, m.id.round); i++) {
		size_t bytes, at = state_piece_at(&m.c, kind, m.id.round, i, &bytes);
		uint8_t *piece = m.payload + at;
		assert_int_equal(state_piece_check(&m.c, &m.id, m.manifest, i, piece, bytes, &et), RV_OK);
		for (size_t k = 0; k < bytes; k += bytes / 3) {
			piece[k] ^= 0x10;
			assert_int_equal(state_piece_check(&m.c, &m.id, m.manifest, i, piece, bytes, &et), RV_E_CORRUPT);
			assert_non_null(strstr(et.text, "piece"));
			piece[k] ^= 0x10;
		}
	}
	made_release(&m);
}

static void any_flipped_bit_of_a_piece_is_found(void **state) {
	(void)state;
	for (enum state_kind kind = STATE_KIND_SNAPSHOT; kind <= STATE_KIND_LOG; kind++)
		for (uint32_t fragments = 1; fragments <= 3; fragments++)
			flip_bits(kind, fragments);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_tile_the_payload),
		cmocka_unit_test(a_log_piece_holds_as_many_chunks_as_fit),
		cmocka_unit_test(a_log_entry_is_of_its_rounds_fragment),
		cmocka_unit_test(a_manifest_makes_the_committed_hash),
		cmocka_unit_test(any_flipped_bit_of_a_piece_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
