/* lab_checkpoint.c: a run of the lab on disk. Little-endian, in this order:
 *   checkpoint_header.h
 *   measurements so far: f64 average_loss, f64 replica_loss, i64 wall_us
 *   methods that average: u64 outer steps applied, chain hash, theta, outer states, the method's
 *     own vectors, and the last reduced bytes: those of a round that is not applied yet (overlap)
 *   each replica: f64 loss sum, u64 steps, u64 tokens, i64 compute time; of its participant
 *     (participant.h) u64 steps done, u64 tokens, u64 steps ahead, u64 tokens ahead; u64 size,
 *     replica_save's bytes
 *   BLAKE2b-256 of everything before */
#include "lab/run/checkpoint_header.h"

#include "base/assert.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

enum { MEASURED_BYTES = 3 * 8, WORKER_BYTES = 9 * 8 };

static size_t global_vectors(const struct lab_run *r) {
	return r->global.theta ? 1 + (size_t)r->global.cfg.optimizer->n_states + (size_t)r->n_extra : 0;
}

static size_t global_bytes(const struct lab_run *r) {
	if (global_vectors(r) == 0)
		return 0;
	return 8 + RV_HASH_BYTES + global_vectors(r) * r->global.cfg.n * sizeof(float) +
		   global_max_payload_bytes(&r->global.cfg);
}

static size_t checkpoint_bytes(const struct lab_run *r) {
	size_t n = CHECKPOINT_HEADER_BYTES + MEASURED_BYTES + global_bytes(r) + RV_HASH_BYTES;
	for (int i = 0; i < r->n_replicas; i++)
		n += WORKER_BYTES + replica_state_bytes(r->replicas[i]);
	return n;
}

static float *global_vector(const struct lab_run *r, size_t k) {
	size_t n_states = (size_t)r->global.cfg.optimizer->n_states;
	if (k > n_states)
		return r->extra[k - n_states - 1];
	return k == 0 ? r->global.theta : r->global.state[k - 1];
}

static void write_measured(const struct lab_run *r, struct rv_writer *w) {
	rv_write_f64(w, r->average_loss);
	rv_write_f64(w, r->replica_loss);
	rv_write_u64(w, (uint64_t)r->wall_us);
}

static void write_global(const struct lab_run *r, struct rv_writer *w) {
	if (global_vectors(r) == 0)
		return;
	rv_write_u64(w, r->global.round);
	rv_write_bytes(w, r->global.chain.b, RV_HASH_BYTES);
	for (size_t k = 0; k < global_vectors(r); k++)
		rv_write_bytes(w, global_vector(r, k), r->global.cfg.n * sizeof(float));
	rv_write_bytes(w, r->reduced, global_max_payload_bytes(&r->global.cfg));
}

static void write_worker(struct lab_run *r, int i, struct rv_writer *w) {
	const struct lab_worker_sums *s = &r->sums[i];
	const struct participant *p = &r->participants[i];
	size_t n = replica_state_bytes(r->replicas[i]);
	rv_write_f64(w, s->loss);
	rv_write_u64(w, s->steps);
	rv_write_u64(w, s->tokens);
	rv_write_u64(w, (uint64_t)s->compute_us);
	rv_write_u64(w, p->steps_done);
	rv_write_u64(w, p->tokens);
	rv_write_u64(w, p->ahead);
	rv_write_u64(w, p->ahead_tokens);
	rv_write_u64(w, n);
	RV_ASSERT((size_t)(w->end - w->at) >= n);
	replica_save(r->replicas[i], w->at);
	w->at += n;
}

static void write_all(struct lab_run *r, struct rv_writer *w) {
	const struct checkpoint_header h = checkpoint_header_of(r);
	checkpoint_header_write(&h, w);
	write_measured(r, w);
	write_global(r, w);
	for (int i = 0; i < r->n_replicas; i++)
		write_worker(r, i, w);
	struct rv_hash sum = rv_hash_of(w->begin, rv_writer_len(w));
	rv_write_bytes(w, sum.b, sizeof sum.b);
}

enum rv_err lab_run_save(struct lab_run *r, const char *path, struct rv_errtext *et) {
	size_t n = checkpoint_bytes(r);
	uint8_t *bytes = malloc(n);
	if (!bytes)
		return rv_fail(et, RV_E_NOMEM, "no memory for a checkpoint of %zu bytes", n);
	struct rv_writer w = rv_writer_of(bytes, n);
	write_all(r, &w);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == n);
	enum rv_err e = rv_file_write_atomic(path, bytes, n, 0644, et);
	free(bytes);
	return e;
}

static void read_measured(struct lab_run *r, struct rv_reader *in) {
	r->average_loss = rv_read_f64(in);
	r->replica_loss = rv_read_f64(in);
	r->wall_us = (int64_t)rv_read_u64(in);
}

static void read_global(struct lab_run *r, struct rv_reader *in) {
	if (global_vectors(r) == 0)
		return;
	r->global.round = rv_read_u64(in);
	rv_read_copy(in, r->global.chain.b, RV_HASH_BYTES);
	for (size_t k = 0; k < global_vectors(r); k++)
		rv_read_copy(in, global_vector(r, k), r->global.cfg.n * sizeof(float));
	rv_read_copy(in, r->reduced, global_max_payload_bytes(&r->global.cfg));
}

static enum rv_err read_worker(struct lab_run *r, int i, struct rv_reader *in, struct rv_errtext *et) {
	struct lab_worker_sums *s = &r->sums[i];
	struct participant *p = &r->participants[i];
	s->loss = rv_read_f64(in);
	s->steps = rv_read_u64(in);
	s->tokens = rv_read_u64(in);
	s->compute_us = (int64_t)rv_read_u64(in);
	p->round = r->global.round;
	p->steps_done = rv_read_u64(in);
	p->tokens = rv_read_u64(in);
	p->ahead = rv_read_u64(in);
	p->ahead_tokens = rv_read_u64(in);
	p->gave_away = p->ahead > 0 && eager_is_on(&p->eager);
	size_t n = rv_read_u64(in);
	const uint8_t *state = rv_read_span(in, n);
	if (!state)
		return rv_fail(et, RV_E_CORRUPT, "ends in the state of worker %d", i);
	return replica_load(r->replicas[i], state, n, et);
}

static enum rv_err read_all(struct lab_run *r, const struct checkpoint_header *h, const uint8_t *bytes, size_t n,
							struct rv_errtext *et) {
	struct rv_reader in = rv_reader_of(bytes, n - RV_HASH_BYTES);
	const struct rv_hash sum = rv_hash_of(bytes, n - RV_HASH_BYTES);
	if (memcmp(bytes + n - RV_HASH_BYTES, sum.b, sizeof sum.b) != 0)
		return rv_fail(et, RV_E_CORRUPT, "damaged: its hash does not match");
	(void)rv_read_span(&in, CHECKPOINT_HEADER_BYTES);
	r->rounds_done = h->rounds_done;
	r->tokens_done = h->tokens_done;
	r->bytes_sent = h->bytes_sent;
	atomic_store(&r->steps_done, h->steps_done);
	read_measured(r, &in);
	read_global(r, &in);
	for (int i = 0; i < r->n_replicas; i++)
		RV_TRY(read_worker(r, i, &in, et));
	if (!rv_reader_done(&in) || r->rounds_done > (uint64_t)r->cfg.run.rounds)
		return rv_fail(et, RV_E_CORRUPT, "not of the size of this run's checkpoint");
	return RV_OK;
}

enum rv_err lab_run_load(struct lab_run *r, const char *path, struct rv_errtext *et) {
	uint8_t *bytes = NULL;
	size_t n = 0;
	struct checkpoint_header h;
	const struct checkpoint_header mine = checkpoint_header_of(r);
	/* Checks the header before the size, in which another run's may differ. */
	RV_TRY(checkpoint_header_read(path, &h, et));
	enum rv_err e = checkpoint_header_check(&h, &mine, et);
	if (e == RV_OK)
		e = rv_file_read(path, 2 * checkpoint_bytes(r), &bytes, &n, et);
	if (e == RV_OK)
		e = n >= CHECKPOINT_HEADER_BYTES + RV_HASH_BYTES ? read_all(r, &h, bytes, n, et)
														 : rv_fail(et, RV_E_CORRUPT, "only %zu bytes", n);
	free(bytes);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}
