/* fuzz_state_files.c: base, log and replica files, which a joiner fetches from strangers. The first byte chooses the
 * kind; the rest is tried as a file, and laid over the front of a valid one whose header check is then made right,
 * since no search finds a BLAKE2b value. */
#include "worker/state_format.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES = 300, REPLICA_PAYLOAD_BYTES = 40, FILE_BYTES_MAX = 4096 };
enum kind { BASE, LOG, REPLICA, KINDS };

static const float theta0[VALUES];

static struct global_config config(void) {
	struct global_config c = {.n = VALUES,
							  .chunks = chunking_of(VALUES, 256),
							  .codec = &codec_int8,
							  .optimizer = &outer_nesterov,
							  .params = {.lr = 0.7f, .momentum = 0.9f}};
	memset(c.run_hash.b, 0x11, sizeof c.run_hash.b);
	return c;
}

static enum rv_err load(const struct global_config *c, enum kind kind, const uint8_t *file, size_t n,
						struct rv_errtext *et) {
	struct state_log_info log;
	struct state_replica_info replica;
	const uint8_t *payload;
	struct rv_hash full;
	if (kind == BASE)
		return state_base_load(c, file, n, NULL, &full, et);
	enum rv_err e = kind == LOG ? state_log_load(c, file, n, &log, &payload, et)
								: state_replica_load(c, file, n, &replica, &payload, et);
	if (e == RV_OK)
		RV_ASSERT(payload >= file && payload <= file + n);
	if (e == RV_OK && kind == REPLICA)
		RV_ASSERT(replica.payload_bytes == (size_t)(file + n - payload));
	return e;
}

/* A valid file of the kind; returns its size, and the size of a header that ends with a check. */
static size_t make_valid(const struct global_config *c, enum kind kind, uint8_t *file, size_t *checked_bytes) {
	struct global_state g;
	struct state_log_info log = {.round = 3, .attempt = 1};
	struct state_replica_info replica = {.round = 3, .steps_done = 30, .payload_bytes = REPLICA_PAYLOAD_BYTES};
	*checked_bytes = 0;
	memset(file, 0, FILE_BYTES_MAX);
	RV_ASSERT(global_init(&g, c, theta0, NULL) == RV_OK);
	size_t n = STATE_REPLICA_HEADER_BYTES + REPLICA_PAYLOAD_BYTES;
	if (kind == BASE) {
		struct rv_hash full = global_full_hash(&g);
		state_base_header(&g, &full, file);
		n = state_base_bytes(c);
	} else if (kind == LOG) {
		log.digest = global_digest(&g, log.round, file + STATE_LOG_HEADER_BYTES);
		state_log_header(c, &log, file);
		*checked_bytes = STATE_LOG_HEADER_BYTES;
		n = state_log_bytes(c);
	} else {
		state_replica_header(c, &replica, file);
		*checked_bytes = STATE_REPLICA_HEADER_BYTES;
	}
	global_release(&g);
	RV_ASSERT(n <= FILE_BYTES_MAX);
	return n;
}

/* On a copy of exactly the size, aligned as malloc aligns, so that a read past the end is seen. */
static void check_load(const struct global_config *c, enum kind kind, const uint8_t *file, size_t n, bool want_ok) {
	struct rv_errtext et = {0};
	uint8_t *copy = malloc(n ? n : 1);
	RV_ASSERT(copy);
	memcpy(copy, file, n);
	enum rv_err e = load(c, kind, copy, n, &et);
	RV_ASSERT(e == RV_OK || et.text[0]);
	RV_ASSERT(e == RV_OK || !want_ok);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (size == 0)
		return 0;
	enum kind kind = data[0] % KINDS;
	struct global_config c = config();
	uint8_t file[FILE_BYTES_MAX];
	size_t checked_bytes, n = make_valid(&c, kind, file, &checked_bytes);
	check_load(&c, kind, file, n, true);
	check_load(&c, kind, data + 1, size - 1, false);
	memcpy(file, data + 1, size - 1 < n ? size - 1 : n);
	if (checked_bytes > 0) {
		struct rv_hash check = rv_hash_of(file, checked_bytes - RV_HASH_BYTES);
		memcpy(file + checked_bytes - RV_HASH_BYTES, check.b, RV_HASH_BYTES);
	}
	check_load(&c, kind, file, n, false);
	return 0;
}
