/* fuzz_state_files.c: snapshot, log, replica and inner state files, and pieces as peers send them.
 * The first byte chooses the kind and whether rounds exchange fragments; the rest is tried as a
 * file, and laid over the front of a valid one whose checks are then made right, since no search
 * finds a BLAKE2b value; pieces are laid over a valid zstd frame. */
#include "worker/state/replica_file.h"
#include "worker/state/state_file.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES = 300, ROUND = 3, REPLICA_PAYLOAD_BYTES = 40, FILE_BYTES_MAX = 8192 };
enum kind { SNAPSHOT = STATE_KIND_SNAPSHOT, LOG = STATE_KIND_LOG, REPLICA, PIECE, INNER, KINDS };
enum { LEAVES = 4 /* of an inner state */ };

static const float theta0[VALUES];

static struct global_config config(bool fragments) {
	const struct fragment_layers layers = {.begin = 256, .layer_elems = 256, .n = 1};
	struct global_config c = {.n = VALUES,
							  .chunks = chunking_of(VALUES, 256),
							  .codec = &codec_int8,
							  .optimizer = &outer_nesterov,
							  .params = {.lr = 0.7f, .momentum = 0.9f}};
	memset(c.run_hash.b, 0x11, sizeof c.run_hash.b);
	RV_ASSERT(fragments_make(&c.chunks, fragments ? 2 : 1, &layers, &c.fragments, NULL) == RV_OK);
	return c;
}

static enum rv_err load_replica(const struct global_config *c, const uint8_t *file, size_t n, struct rv_errtext *et) {
	struct replica_file *f;
	char path[64];
	uint8_t last;
	RV_TRY(replica_file_of(c, memory_file(file, n, path), &f, et));
	const uint64_t bytes = replica_file_info(f)->payload_bytes;
	const struct byte_source payload = replica_file_payload(f);
	RV_ASSERT(bytes == n - STATE_HEADER_BYTES);
	RV_ASSERT(bytes == 0 || payload.read(payload.ctx, bytes - 1, &last, 1, et) == RV_OK);
	replica_file_free(f);
	return RV_OK;
}

static enum rv_err load_inner(const struct global_config *c, const uint8_t *file, size_t n, struct rv_errtext *et) {
	uint64_t round;
	struct rv_hash leaves;
	if (n < STATE_HEADER_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "cut short");
	return state_inner_header_load(c, file, LEAVES, &round, &leaves, et);
}

static enum rv_err load_state(const struct global_config *c, enum state_kind kind, const uint8_t *bytes, size_t n,
							  struct rv_errtext *et) {
	struct state_file *f;
	struct blob *payload = NULL;
	char path[64];
	RV_TRY(state_file_of(c, kind, memory_file(bytes, n, path), &f, et));
	enum rv_err e = state_file_verify(f, et);
	if (e == RV_OK && kind == STATE_KIND_LOG)
		RV_ASSERT(state_file_load_log(f, &payload, et) == RV_OK);
	blob_unref(payload);
	state_file_free(f);
	return e;
}

static void write_prefix(const struct global_config *c, const struct global_state *g, enum kind kind, uint8_t *file) {
	uint8_t *payload = file + state_prefix_bytes(c, (enum state_kind)kind, ROUND);
	struct rv_hash *manifest =
		(struct rv_hash *)(void *)payload - state_manifest_hashes(c, (enum state_kind)kind, ROUND);
	state_manifest_of(c, (enum state_kind)kind, ROUND, payload, manifest);
	if (kind == SNAPSHOT) {
		const struct state_snapshot_info info = {.chain = g->chain,
												 .full_hash = global_full_hash_of(c, 0, &g->chain, manifest)};
		state_snapshot_header(c, &info, file);
		return;
	}
	const struct state_log_info info = {.round = ROUND, .attempt = 1, .digest = global_digest_of(c, ROUND, manifest)};
	state_log_header(c, &info, file + STATE_HEADER_BYTES, file);
}

/* A valid file of the kind; returns its size. A log's pieces are raw. */
static size_t make_valid(const struct global_config *c, enum kind kind, uint8_t *file) {
	struct global_state g;
	memset(file, 0, FILE_BYTES_MAX);
	if (kind == REPLICA) {
		const struct state_replica_info replica = {
			.round = 3, .steps_done = 30, .payload_bytes = REPLICA_PAYLOAD_BYTES};
		state_replica_header(c, &replica, file);
		return STATE_HEADER_BYTES + REPLICA_PAYLOAD_BYTES;
	}
	if (kind == INNER) {
		const struct rv_hash leaves[LEAVES] = {{{1}}};
		state_inner_header(c, ROUND, leaves, LEAVES, file);
		return STATE_HEADER_BYTES;
	}
	RV_ASSERT(global_init(&g, c, theta0, NULL) == RV_OK);
	if (kind == LOG) {
		size_t bytes;
		(void)state_piece_at(c, STATE_KIND_LOG, ROUND, 0, &bytes);
		state_index_write(&(struct state_stored){STATE_RAW, (uint32_t)bytes}, 1, file + STATE_HEADER_BYTES);
	}
	write_prefix(c, &g, kind, file);
	global_release(&g);
	size_t n = state_file_max_bytes(c, (enum state_kind)kind, ROUND);
	RV_ASSERT(n <= FILE_BYTES_MAX);
	return n;
}

static void seal(uint8_t *file, size_t n) {
	struct rv_hash check = rv_hash_of(file, n - RV_HASH_BYTES);
	memcpy(file + n - RV_HASH_BYTES, check.b, RV_HASH_BYTES);
}

static void check_load(const struct global_config *c, enum kind kind, const uint8_t *file, size_t n, bool want_ok) {
	struct rv_errtext et = {0};
	enum rv_err e = kind == REPLICA ? load_replica(c, file, n, &et)
					: kind == INNER ? load_inner(c, file, n, &et)
									: load_state(c, (enum state_kind)kind, file, n, &et);
	RV_ASSERT(e == RV_OK || et.text[0]);
	RV_ASSERT(e == RV_OK || !want_ok);
}

/* The first byte is the encoding; the piece is of a size that a log has. */
static void check_piece(const uint8_t *data, size_t n) {
	enum { PIECE_BYTES = 2000 };
	struct state_packer *p = state_packer_new();
	RV_ASSERT(p);
	uint8_t *piece = calloc(1, PIECE_BYTES), *out = malloc(PIECE_BYTES), *stored = malloc(n ? n : 1);
	RV_ASSERT(piece && out && stored);
	if (n > 0) {
		const struct state_stored what = {(enum state_encoding)data[0], (uint32_t)n - 1};
		memcpy(stored, data + 1, n - 1);
		if (state_unpack(p, &what, stored, out, PIECE_BYTES, NULL) == RV_OK)
			RV_ASSERT(what.encoding == STATE_RAW || n - 1 < PIECE_BYTES);
		struct state_stored frame = state_pack(p, piece, PIECE_BYTES, out);
		RV_ASSERT(frame.encoding == STATE_ZSTD);
		for (size_t i = 0; i < frame.bytes && i + 1 < n; i++)
			out[i] ^= data[i + 1];
		(void)state_unpack(p, &frame, out, piece, PIECE_BYTES, NULL);
	}
	free(piece);
	free(out);
	free(stored);
	state_packer_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (size == 0)
		return 0;
	enum kind kind = (enum kind)(SNAPSHOT + data[0] % (KINDS - SNAPSHOT));
	struct global_config c = config((data[0] / (KINDS - SNAPSHOT)) % 2 == 1);
	uint8_t file[FILE_BYTES_MAX];
	if (kind == PIECE) {
		check_piece(data + 1, size - 1);
		return 0;
	}
	size_t n = make_valid(&c, kind, file);
	check_load(&c, kind, file, n, true);
	check_load(&c, kind, data + 1, size - 1, false);
	memcpy(file, data + 1, size - 1 < n ? size - 1 : n);
	if (kind == LOG) { /* the hash of the index, where state_log_header puts it */
		enum { INDEX_HASH_AT = 112 };
		struct rv_hash index = rv_hash_of(file + STATE_HEADER_BYTES, state_index_bytes(&c, STATE_KIND_LOG, ROUND));
		memcpy(file + INDEX_HASH_AT, index.b, RV_HASH_BYTES);
	}
	seal(file, STATE_HEADER_BYTES);
	check_load(&c, kind, file, n, false);
	return 0;
}
