/* state_format.c: headers of the state files. */
#include "worker/state_format.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

enum { VERSION = 1, MAGIC_BYTES = 8 };

static const char base_magic[MAGIC_BYTES] = "RVBASE", log_magic[MAGIC_BYTES] = "RVLOG",
				  replica_magic[MAGIC_BYTES] = "RVREPL";

static void begin(struct rv_writer *w, const char *magic, const struct global_config *c) {
	rv_write_bytes(w, magic, MAGIC_BYTES);
	rv_write_u32(w, VERSION);
	rv_write_u32(w, 0);
	rv_write_bytes(w, c->run_hash.b, RV_HASH_BYTES);
}

/* Zeros up to the check, then the check over everything before it. */
static void end_checked(struct rv_writer *w) {
	while (w->at + RV_HASH_BYTES < w->end)
		rv_write_u8(w, 0);
	struct rv_hash check = rv_hash_of(w->begin, rv_writer_len(w));
	rv_write_bytes(w, check.b, RV_HASH_BYTES);
	RV_ASSERT(!w->failed && w->at == w->end);
}

/* What all headers have in common. */
static enum rv_err read_begin(struct rv_reader *r, const char *magic, const struct global_config *c,
							  struct rv_errtext *et) {
	const uint8_t *found = rv_read_span(r, MAGIC_BYTES);
	if (!found || memcmp(found, magic, MAGIC_BYTES) != 0)
		return rv_fail(et, RV_E_CORRUPT, "does not begin with %s", magic);
	uint32_t version = rv_read_u32(r);
	if (version != VERSION)
		return rv_fail(et, RV_E_UNSUPPORTED, "version %u of the format; this program reads %d", version, VERSION);
	(void)rv_read_u32(r);
	struct rv_hash run;
	rv_read_copy(r, run.b, RV_HASH_BYTES);
	if (!rv_hash_equal(&run, &c->run_hash))
		return rv_fail(et, RV_E_CORRUPT, "belongs to another run");
	return RV_OK;
}

static enum rv_err check_header(const uint8_t *file, size_t header_bytes, struct rv_errtext *et) {
	struct rv_hash check = rv_hash_of(file, header_bytes - RV_HASH_BYTES);
	if (memcmp(check.b, file + header_bytes - RV_HASH_BYTES, RV_HASH_BYTES) != 0)
		return rv_fail(et, RV_E_CORRUPT, "its header is damaged (check does not match)");
	return RV_OK;
}

static enum rv_err check_size(size_t n, size_t want, struct rv_errtext *et) {
	if (n != want)
		return rv_fail(et, RV_E_CORRUPT, "%zu bytes, must be %zu: cut short or of another model", n, want);
	return RV_OK;
}

/* ---- base
 * ------------------------------------------------------------------------------------------------------------
 */

static size_t vector_bytes(const struct global_config *c) {
	return c->n * sizeof(float);
}

size_t state_base_bytes(const struct global_config *c) {
	return STATE_BASE_HEADER_BYTES + vector_bytes(c) * (size_t)(1 + c->optimizer->n_states);
}

void state_base_header(const struct global_state *g, const struct rv_hash *full_hash,
					   uint8_t out[STATE_BASE_HEADER_BYTES]) {
	struct rv_writer w = rv_writer_of(out, STATE_BASE_HEADER_BYTES);
	begin(&w, base_magic, &g->cfg);
	rv_write_u64(&w, g->round);
	rv_write_bytes(&w, g->chain.b, RV_HASH_BYTES);
	rv_write_bytes(&w, full_hash->b, RV_HASH_BYTES);
	rv_write_u64(&w, g->cfg.n);
	RV_ASSERT(!w.failed && w.at == w.end);
}

static void copy_state(struct global_state *into, const struct global_state *from) {
	memcpy(into->theta, from->theta, vector_bytes(&from->cfg));
	for (int k = 0; k < from->cfg.optimizer->n_states; k++) {
		RV_ASSERT(from->state[k]);
		memcpy(into->state[k], from->state[k], vector_bytes(&from->cfg));
	}
	into->round = from->round;
	into->chain = from->chain;
}

enum rv_err state_base_header_load(const struct global_config *c, const uint8_t header[STATE_BASE_HEADER_BYTES],
								   struct state_base_info *info, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(header, STATE_BASE_HEADER_BYTES);
	RV_TRY(read_begin(&r, base_magic, c, et));
	info->round = rv_read_u64(&r);
	rv_read_copy(&r, info->chain.b, RV_HASH_BYTES);
	rv_read_copy(&r, info->full_hash.b, RV_HASH_BYTES);
	if (rv_read_u64(&r) != c->n)
		return rv_fail(et, RV_E_CORRUPT, "of a model with another number of parameters than %zu", c->n);
	RV_ASSERT(rv_reader_done(&r));
	return RV_OK;
}

enum rv_err state_base_load(const struct global_config *c, const uint8_t *file, size_t n, struct global_state *into,
							struct rv_hash *full_hash, struct rv_errtext *et) {
	struct state_base_info info;
	RV_TRY(check_size(n, state_base_bytes(c), et));
	RV_TRY(state_base_header_load(c, file, &info, et));
	struct global_state view = {.cfg = *c, .round = info.round, .chain = info.chain};
	RV_ASSERT(((uintptr_t)(file + STATE_BASE_HEADER_BYTES) & (sizeof(float) - 1)) == 0);
	float *vectors = (float *)(uintptr_t)(file + STATE_BASE_HEADER_BYTES); /* only read through the view */
	view.theta = vectors;
	for (int k = 0; k < c->optimizer->n_states; k++)
		view.state[k] = vectors + (size_t)(k + 1) * c->n;
	struct rv_hash hash = global_full_hash(&view);
	if (!rv_hash_equal(&hash, &info.full_hash))
		return rv_fail(et, RV_E_CORRUPT, "its contents do not match its full hash: damaged");
	if (full_hash)
		*full_hash = hash;
	if (into)
		copy_state(into, &view);
	return RV_OK;
}

/* ---- log
 * -------------------------------------------------------------------------------------------------------------
 */

static size_t payload_bytes(const struct global_config *c) {
	return chunking_total_bytes(&c->chunks, c->codec);
}

size_t state_log_bytes(const struct global_config *c) {
	return STATE_LOG_HEADER_BYTES + payload_bytes(c);
}

void state_log_header(const struct global_config *c, const struct state_log_info *info,
					  uint8_t out[STATE_LOG_HEADER_BYTES]) {
	struct rv_writer w = rv_writer_of(out, STATE_LOG_HEADER_BYTES);
	begin(&w, log_magic, c);
	rv_write_u64(&w, info->round);
	rv_write_u32(&w, info->attempt);
	rv_write_u32(&w, c->codec->id);
	rv_write_u64(&w, c->chunks.chunk_elems);
	rv_write_u64(&w, payload_bytes(c));
	rv_write_bytes(&w, info->digest.b, RV_HASH_BYTES);
	end_checked(&w);
}

enum rv_err state_log_load(const struct global_config *c, const uint8_t *file, size_t n, struct state_log_info *info,
						   const uint8_t **payload, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(file, n);
	RV_TRY(check_size(n, state_log_bytes(c), et));
	RV_TRY(read_begin(&r, log_magic, c, et));
	RV_TRY(check_header(file, STATE_LOG_HEADER_BYTES, et));
	info->round = rv_read_u64(&r);
	info->attempt = rv_read_u32(&r);
	uint32_t codec = rv_read_u32(&r);
	uint64_t chunk_elems = rv_read_u64(&r), bytes = rv_read_u64(&r);
	rv_read_copy(&r, info->digest.b, RV_HASH_BYTES);
	if (codec != c->codec->id || chunk_elems != c->chunks.chunk_elems || bytes != payload_bytes(c))
		return rv_fail(et, RV_E_CORRUPT, "of another codec or chunk size than the run's");
	*payload = file + STATE_LOG_HEADER_BYTES;
	struct global_state names = {.cfg = *c};
	struct rv_hash digest = global_digest(&names, info->round, *payload);
	if (!rv_hash_equal(&digest, &info->digest))
		return rv_fail(et, RV_E_CORRUPT, "its contents do not match its digest: damaged");
	return RV_OK;
}

/* ---- replica
 * ---------------------------------------------------------------------------------------------------------
 */

void state_replica_header(const struct global_config *c, const struct state_replica_info *info,
						  uint8_t out[STATE_REPLICA_HEADER_BYTES]) {
	struct rv_writer w = rv_writer_of(out, STATE_REPLICA_HEADER_BYTES);
	begin(&w, replica_magic, c);
	rv_write_u64(&w, info->round);
	rv_write_bytes(&w, info->chain.b, RV_HASH_BYTES);
	rv_write_u64(&w, info->steps_done);
	rv_write_u64(&w, info->tokens);
	rv_write_u64(&w, info->run_tokens);
	rv_write_u64(&w, info->bytes_sent);
	rv_write_u64(&w, info->formula_bytes);
	rv_write_u64(&w, info->payload_bytes);
	end_checked(&w);
}

enum rv_err state_replica_header_load(const struct global_config *c, const uint8_t header[STATE_REPLICA_HEADER_BYTES],
									  struct state_replica_info *info, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(header, STATE_REPLICA_HEADER_BYTES);
	RV_TRY(read_begin(&r, replica_magic, c, et));
	RV_TRY(check_header(header, STATE_REPLICA_HEADER_BYTES, et));
	info->round = rv_read_u64(&r);
	rv_read_copy(&r, info->chain.b, RV_HASH_BYTES);
	info->steps_done = rv_read_u64(&r);
	info->tokens = rv_read_u64(&r);
	info->run_tokens = rv_read_u64(&r);
	info->bytes_sent = rv_read_u64(&r);
	info->formula_bytes = rv_read_u64(&r);
	info->payload_bytes = rv_read_u64(&r);
	return RV_OK;
}

enum rv_err state_replica_load(const struct global_config *c, const uint8_t *file, size_t n,
							   struct state_replica_info *info, const uint8_t **payload, struct rv_errtext *et) {
	if (n < STATE_REPLICA_HEADER_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "%zu bytes: cut short", n);
	RV_TRY(state_replica_header_load(c, file, info, et));
	RV_TRY(check_size(n - STATE_REPLICA_HEADER_BYTES, info->payload_bytes, et));
	*payload = file + STATE_REPLICA_HEADER_BYTES;
	return RV_OK;
}
