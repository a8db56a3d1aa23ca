/* state_format.c: headers of the state files, and the index of a log. */
#include "worker/state/state_format.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

enum { MAGIC_BYTES = 8 };

static const char snapshot_magic[MAGIC_BYTES] = "RVSNAP", log_magic[MAGIC_BYTES] = "RVLOG",
				  replica_magic[MAGIC_BYTES] = "RVREPL", means_magic[MAGIC_BYTES] = "RVMEANS",
				  contribution_magic[MAGIC_BYTES] = "RVGIVEN", inner_magic[MAGIC_BYTES] = "RVINNER";

/* ---- what all headers have in common ---- */

static struct rv_writer begin(uint8_t *out, const char *magic, uint32_t version, const struct global_config *c) {
	struct rv_writer w = rv_writer_of(out, STATE_HEADER_BYTES);
	rv_write_bytes(&w, magic, MAGIC_BYTES);
	rv_write_u32(&w, version);
	rv_write_u32(&w, 0);
	rv_write_bytes(&w, c->run_hash.b, RV_HASH_BYTES);
	return w;
}

/* Zeros up to the check, then the check over everything before it. */
static void end_checked(struct rv_writer *w) {
	while (w->at + RV_HASH_BYTES < w->end)
		rv_write_u8(w, 0);
	struct rv_hash check = rv_hash_of(w->begin, rv_writer_len(w));
	rv_write_bytes(w, check.b, RV_HASH_BYTES);
	RV_ASSERT(!w->failed && w->at == w->end);
}

static enum rv_err read_begin(struct rv_reader *r, const char *magic, uint32_t version, const struct global_config *c,
							  struct rv_errtext *et) {
	const uint8_t *header = r->at;
	const size_t summed = STATE_HEADER_BYTES - RV_HASH_BYTES;
	*r = rv_reader_of(header, STATE_HEADER_BYTES);
	if (memcmp(rv_read_span(r, MAGIC_BYTES), magic, MAGIC_BYTES) != 0)
		return rv_fail(et, RV_E_CORRUPT, "does not begin with %s", magic);
	uint32_t found = rv_read_u32(r);
	if (found != version)
		return rv_fail(
			et, RV_E_UNSUPPORTED,
			"version %u of the format, this program reads version %u: use the release that wrote it, or a later one",
			found, version);
	struct rv_hash check = rv_hash_of(header, summed), run;
	if (memcmp(check.b, header + summed, RV_HASH_BYTES) != 0)
		return rv_fail(et, RV_E_CORRUPT, "its header is damaged (check does not match)");
	(void)rv_read_u32(r);
	rv_read_copy(r, run.b, RV_HASH_BYTES);
	if (!rv_hash_equal(&run, &c->run_hash))
		return rv_fail(et, RV_E_CORRUPT, "belongs to another run");
	return RV_OK;
}

size_t state_index_bytes(const struct global_config *c, enum state_kind kind, uint64_t round) {
	return kind == STATE_KIND_LOG ? (size_t)state_pieces(c, kind, round) * STATE_INDEX_ENTRY_BYTES : 0;
}

size_t state_prefix_bytes(const struct global_config *c, enum state_kind kind, uint64_t round) {
	return STATE_HEADER_BYTES + state_index_bytes(c, kind, round) +
		   (size_t)state_manifest_hashes(c, kind, round) * RV_HASH_BYTES;
}

size_t state_file_max_bytes(const struct global_config *c, enum state_kind kind, uint64_t round) {
	return state_prefix_bytes(c, kind, round) + state_payload_bytes(c, kind, round);
}

/* ---- snapshot ---- */

void state_snapshot_header(const struct global_config *c, const struct state_snapshot_info *info,
						   uint8_t out[STATE_HEADER_BYTES]) {
	struct rv_writer w = begin(out, snapshot_magic, STATE_VERSION, c);
	rv_write_u64(&w, info->round);
	rv_write_bytes(&w, info->chain.b, RV_HASH_BYTES);
	rv_write_bytes(&w, info->full_hash.b, RV_HASH_BYTES);
	rv_write_u64(&w, c->n);
	rv_write_u32(&w, (uint32_t)global_states(c));
	end_checked(&w);
}

enum rv_err state_snapshot_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES],
									   struct state_snapshot_info *info, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(header, STATE_HEADER_BYTES);
	RV_TRY(read_begin(&r, snapshot_magic, STATE_VERSION, c, et));
	info->round = rv_read_u64(&r);
	rv_read_copy(&r, info->chain.b, RV_HASH_BYTES);
	rv_read_copy(&r, info->full_hash.b, RV_HASH_BYTES);
	uint64_t n = rv_read_u64(&r);
	if (n != c->n || rv_read_u32(&r) != (uint32_t)global_states(c))
		return rv_fail(et, RV_E_CORRUPT,
					   "of another model, outer optimizer or aggregation rule than one with %zu parameters, %s and %s",
					   c->n, c->optimizer->name, c->merge ? c->merge->name : merge_mean.name);
	return RV_OK;
}

/* ---- log ---- */

void state_log_header(const struct global_config *c, const struct state_log_info *info, const uint8_t *index,
					  uint8_t out[STATE_HEADER_BYTES]) {
	struct rv_hash index_hash = rv_hash_of(index, state_index_bytes(c, STATE_KIND_LOG, info->round));
	struct rv_writer w = begin(out, log_magic, STATE_VERSION, c);
	rv_write_u64(&w, info->round);
	rv_write_u32(&w, info->attempt);
	rv_write_u32(&w, c->codec->id);
	rv_write_u64(&w, c->chunks.chunk_elems);
	rv_write_u64(&w, state_payload_bytes(c, STATE_KIND_LOG, info->round));
	rv_write_bytes(&w, info->digest.b, RV_HASH_BYTES);
	rv_write_bytes(&w, index_hash.b, RV_HASH_BYTES);
	rv_write_u32(&w, info->form.member);
	rv_write_u8(&w, info->form.codec);
	rv_write_u8(&w, info->form.part);
	end_checked(&w);
}

enum rv_err state_log_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES],
								  struct state_log_info *info, struct rv_hash *index_hash, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(header, STATE_HEADER_BYTES);
	RV_TRY(read_begin(&r, log_magic, STATE_VERSION, c, et));
	info->round = rv_read_u64(&r);
	info->attempt = rv_read_u32(&r);
	uint32_t codec = rv_read_u32(&r);
	uint64_t chunk_elems = rv_read_u64(&r), bytes = rv_read_u64(&r);
	rv_read_copy(&r, info->digest.b, RV_HASH_BYTES);
	rv_read_copy(&r, index_hash->b, RV_HASH_BYTES);
	info->form.member = rv_read_u32(&r);
	info->form.codec = rv_read_u8(&r);
	info->form.part = rv_read_u8(&r);
	if (global_sent_as(c, info->form.codec) == NULL)
		return rv_fail(et, RV_E_CORRUPT, "of a contribution by codec %u, which is not the run's or a coarser one",
					   info->form.codec);
	if (codec != c->codec->id || chunk_elems != c->chunks.chunk_elems ||
		bytes != state_payload_bytes(c, STATE_KIND_LOG, info->round))
		return rv_fail(et, RV_E_CORRUPT, "of another codec, chunk size or fragment than the run's");
	return RV_OK;
}

enum { ENCODING_SHIFT = 28 }; /* the stored bytes below it, the encoding above */
_Static_assert(STATE_PIECE_MAX_BYTES < 1 << ENCODING_SHIFT, "a stored piece's bytes fit an index entry");

void state_index_write(const struct state_stored *pieces, uint32_t n, uint8_t *out) {
	struct rv_writer w = rv_writer_of(out, (size_t)n * STATE_INDEX_ENTRY_BYTES);
	for (uint32_t i = 0; i < n; i++)
		rv_write_u32(&w, (uint32_t)pieces[i].encoding << ENCODING_SHIFT | pieces[i].bytes);
	RV_ASSERT(!w.failed);
}

enum rv_err state_index_load(const struct global_config *c, uint64_t round, const struct rv_hash *index_hash,
							 const uint8_t *index, struct state_stored *pieces, uint64_t *stored_bytes,
							 struct rv_errtext *et) {
	size_t n = state_index_bytes(c, STATE_KIND_LOG, round);
	struct rv_hash hash = rv_hash_of(index, n);
	struct rv_reader r = rv_reader_of(index, n);
	*stored_bytes = 0;
	if (!rv_hash_equal(&hash, index_hash))
		return rv_fail(et, RV_E_CORRUPT, "its index is damaged (hash does not match)");
	for (uint32_t i = 0; i < state_pieces(c, STATE_KIND_LOG, round); i++) {
		uint32_t entry = rv_read_u32(&r), encoding = entry >> ENCODING_SHIFT;
		size_t piece_bytes;
		(void)state_piece_at(c, STATE_KIND_LOG, round, i, &piece_bytes);
		RV_TRY(state_stored_check(encoding, entry & ((1u << ENCODING_SHIFT) - 1), piece_bytes, et));
		pieces[i] = (struct state_stored){(enum state_encoding)encoding, entry & ((1u << ENCODING_SHIFT) - 1)};
		*stored_bytes += pieces[i].bytes;
	}
	return RV_OK;
}

/* ---- replica ---- */

void state_replica_header(const struct global_config *c, const struct state_replica_info *info,
						  uint8_t out[STATE_HEADER_BYTES]) {
	struct rv_writer w = begin(out, replica_magic, STATE_VERSION, c);
	rv_write_u64(&w, info->round);
	rv_write_bytes(&w, info->chain.b, RV_HASH_BYTES);
	rv_write_u64(&w, info->steps_done);
	rv_write_u64(&w, info->tokens);
	rv_write_u64(&w, info->run_tokens);
	rv_write_u64(&w, info->bytes_sent);
	rv_write_u64(&w, info->formula_bytes);
	rv_write_u64(&w, info->payload_bytes);
	rv_write_u64(&w, info->first);
	rv_write_u64(&w, info->sequences);
	end_checked(&w);
}

enum rv_err state_replica_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES],
									  struct state_replica_info *info, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(header, STATE_HEADER_BYTES);
	RV_TRY(read_begin(&r, replica_magic, STATE_VERSION, c, et));
	info->round = rv_read_u64(&r);
	rv_read_copy(&r, info->chain.b, RV_HASH_BYTES);
	info->steps_done = rv_read_u64(&r);
	info->tokens = rv_read_u64(&r);
	info->run_tokens = rv_read_u64(&r);
	info->bytes_sent = rv_read_u64(&r);
	info->formula_bytes = rv_read_u64(&r);
	info->payload_bytes = rv_read_u64(&r);
	info->first = rv_read_u64(&r);
	info->sequences = rv_read_u64(&r);
	return RV_OK;
}

/* ---- means ---- */

void state_means_header(const struct global_config *c, uint64_t round, const uint8_t *payload, size_t n,
						uint8_t out[STATE_HEADER_BYTES]) {
	const struct rv_hash hash = rv_hash_of(payload, n);
	struct rv_writer w = begin(out, means_magic, STATE_VERSION, c);
	rv_write_u64(&w, round);
	rv_write_u64(&w, n);
	rv_write_bytes(&w, hash.b, RV_HASH_BYTES);
	end_checked(&w);
}

enum rv_err state_means_load(const struct global_config *c, const uint8_t *file, size_t n, uint64_t *round,
							 const uint8_t **payload, size_t *payload_bytes, struct rv_errtext *et) {
	struct rv_hash hash;
	if (n < STATE_HEADER_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "%zu bytes: cut short", n);
	struct rv_reader r = rv_reader_of(file, STATE_HEADER_BYTES);
	RV_TRY(read_begin(&r, means_magic, STATE_VERSION, c, et));
	*round = rv_read_u64(&r);
	const uint64_t bytes = rv_read_u64(&r);
	rv_read_copy(&r, hash.b, RV_HASH_BYTES);
	*payload = file + STATE_HEADER_BYTES;
	*payload_bytes = n - STATE_HEADER_BYTES;
	if (*payload_bytes != bytes)
		return rv_fail(et, RV_E_CORRUPT, "%zu bytes, must be %llu: cut short, or something follows", n,
					   (unsigned long long)bytes + STATE_HEADER_BYTES);
	const struct rv_hash found = rv_hash_of(*payload, *payload_bytes);
	return rv_hash_equal(&found, &hash) ? RV_OK : rv_fail(et, RV_E_CORRUPT, "damaged: its hash does not match");
}

/* ---- contribution ---- */

void state_contribution_header(const struct global_config *c, uint64_t round, uint8_t codec,
							   const struct rv_hash *leaves, uint32_t n, uint8_t out[STATE_HEADER_BYTES]) {
	const struct rv_hash hash = rv_hash_of(leaves, n * sizeof leaves[0]);
	struct rv_writer w = begin(out, contribution_magic, STATE_VERSION, c);
	rv_write_u64(&w, round);
	rv_write_u32(&w, n);
	rv_write_u32(&w, codec);
	rv_write_bytes(&w, hash.b, RV_HASH_BYTES);
	end_checked(&w);
}

enum rv_err state_contribution_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES],
										   uint64_t *round, uint8_t *codec, struct rv_hash *leaves_hash,
										   struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(header, STATE_HEADER_BYTES);
	RV_TRY(read_begin(&r, contribution_magic, STATE_VERSION, c, et));
	*round = rv_read_u64(&r);
	const uint32_t n = rv_read_u32(&r), sent_as = rv_read_u32(&r);
	rv_read_copy(&r, leaves_hash->b, RV_HASH_BYTES);
	*codec = (uint8_t)sent_as;
	if (n != global_round_chunks(c, *round).n_chunks || sent_as > UINT8_MAX || !global_sent_as(c, *codec))
		return rv_fail(et, RV_E_CORRUPT, "of another codec, chunk size or fragment than the run's");
	return RV_OK;
}

/* ---- inner state ---- */

void state_inner_header(const struct global_config *c, uint64_t round, const struct rv_hash *leaves, uint32_t n,
						uint8_t out[STATE_HEADER_BYTES]) {
	const struct rv_hash hash = rv_hash_of(leaves, n * sizeof leaves[0]);
	struct rv_writer w = begin(out, inner_magic, STATE_VERSION, c);
	rv_write_u64(&w, round);
	rv_write_u32(&w, n);
	rv_write_bytes(&w, hash.b, RV_HASH_BYTES);
	end_checked(&w);
}

enum rv_err state_inner_header_load(const struct global_config *c, const uint8_t header[STATE_HEADER_BYTES], uint32_t n,
									uint64_t *round, struct rv_hash *leaves_hash, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(header, STATE_HEADER_BYTES);
	RV_TRY(read_begin(&r, inner_magic, STATE_VERSION, c, et));
	*round = rv_read_u64(&r);
	const uint32_t found = rv_read_u32(&r);
	rv_read_copy(&r, leaves_hash->b, RV_HASH_BYTES);
	return found == n ? RV_OK : rv_fail(et, RV_E_CORRUPT, "of %u pieces, must be of %u", found, n);
}
