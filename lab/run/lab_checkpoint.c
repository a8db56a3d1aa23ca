/* lab_checkpoint.c: a run of the lab on disk. Little-endian, in this order:
 *   checkpoint_header.h
 *   measurements so far: f64 average_loss, f64 replica_loss, i64 wall_us
 *   methods that average: u64 outer steps applied, chain hash, theta, outer states, the method's
 *     own vectors, and the last reduced bytes: those of a round that is not applied yet (overlap);
 *     with mean-feedback the residual of means, and a byte per chunk: it is held
 *   each replica: f64 loss sum, u64 steps, u64 tokens, i64 compute time; of its participant
 *     (participant.h) u64 steps done, u64 tokens, u64 steps ahead, u64 tokens ahead; u64 size,
 *     replica_save's bytes
 *   with leases (base/leases.h) u64 each: next, granted, consumed, left out; number of free ranges,
 *     their begin and end; for each replica number and count of what it holds, number of pieces,
 *     their begin and count, and of its participant first, sequences, sequences ahead; 0 fills up
 *     the ranges and pieces to the most there may be
 *   BLAKE2b-256 of everything before */
#include "lab/run/checkpoint_header.h"

#include "base/assert.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

enum { MEASURED_BYTES = 3 * 8, WORKER_BYTES = 9 * 8 };

static size_t global_vectors(const struct lab_run *r) {
	return r->global.theta ? 1 + (size_t)global_states(&r->global.cfg) + (size_t)r->n_extra : 0;
}

static size_t mean_residual_bytes(const struct lab_run *r) {
	const struct global_config *g = &r->global.cfg;
	return mean_residual_is_on(&r->mean_residual) ? g->n * sizeof(float) + g->chunks.n_chunks : 0;
}

static size_t global_bytes(const struct lab_run *r) {
	if (global_vectors(r) == 0)
		return 0;
	return 8 + RV_HASH_BYTES + global_vectors(r) * r->global.cfg.n * sizeof(float) +
		   global_max_payload_bytes(&r->global.cfg) + mean_residual_bytes(r);
}

static size_t leases_bytes(const struct lab_run *r) {
	const size_t words = 5 + 2 * LAB_LEASES_FREE + (size_t)r->n_replicas * (3 + 2 * LEASE_PIECES + 3);
	return r->leases.round > 0 ? words * 8 : 0;
}

static size_t checkpoint_bytes(const struct lab_run *r) {
	size_t n = CHECKPOINT_HEADER_BYTES + MEASURED_BYTES + global_bytes(r) + leases_bytes(r) + RV_HASH_BYTES;
	for (int i = 0; i < r->n_replicas; i++)
		n += WORKER_BYTES + replica_state_bytes(r->replicas[i]);
	return n;
}

static float *global_vector(const struct lab_run *r, size_t k) {
	size_t n_states = (size_t)global_states(&r->global.cfg);
	if (k > n_states)
		return r->extra[k - n_states - 1];
	return k == 0 ? r->global.theta : r->global.state[k - 1];
}

/* A pass over the fields of a checkpoint, which writes them or reads them. */
struct pass {
	struct rv_writer *to; /* NULL: reads */
	struct rv_reader *from;
};

/* Passes a number of 8 bytes. */
static void pass_word(const struct pass *p, void *at) {
	uint64_t word;
	memcpy(&word, at, sizeof word);
	if (p->to)
		rv_write_u64(p->to, word);
	else
		word = rv_read_u64(p->from);
	memcpy(at, &word, sizeof word);
}

static void pass_bytes(const struct pass *p, void *at, size_t n) {
	if (p->to)
		rv_write_bytes(p->to, at, n);
	else
		rv_read_copy(p->from, at, n);
}

static void pass_mean_residual(struct mean_residual *m, const struct global_config *g, const struct pass *p) {
	if (!mean_residual_is_on(m))
		return;
	pass_bytes(p, m->kept, g->n * sizeof(float));
	for (uint32_t i = 0; i < g->chunks.n_chunks; i++) {
		uint8_t holds = m->holds[i];
		pass_bytes(p, &holds, 1);
		m->holds[i] = holds != 0;
	}
}

static void pass_run(struct lab_run *r, const struct pass *p) {
	pass_word(p, &r->average_loss);
	pass_word(p, &r->replica_loss);
	pass_word(p, &r->wall_us);
	if (global_vectors(r) == 0)
		return;
	pass_word(p, &r->global.round);
	pass_bytes(p, r->global.chain.b, RV_HASH_BYTES);
	for (size_t k = 0; k < global_vectors(r); k++)
		pass_bytes(p, global_vector(r, k), r->global.cfg.n * sizeof(float));
	pass_bytes(p, r->reduced, global_max_payload_bytes(&r->global.cfg));
	pass_mean_residual(&r->mean_residual, &r->global.cfg, p);
}

static void pass_worker(struct lab_run *r, int i, const struct pass *p) {
	struct lab_worker_sums *s = &r->sums[i];
	struct participant *w = &r->participants[i];
	void *const words[] = {&s->loss,       &s->steps,  &s->tokens, &s->compute_us,
						   &w->steps_done, &w->tokens, &w->ahead,  &w->ahead_tokens};
	for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
		pass_word(p, words[k]);
}

/* Passes a number below 2^32 as 8 bytes; one that is not becomes the largest, which is none of a
 * valid state. */
static void pass_small(const struct pass *p, uint32_t *at) {
	uint64_t word = *at;
	pass_word(p, &word);
	*at = word > UINT32_MAX ? UINT32_MAX : (uint32_t)word;
}

static void pass_holder(struct lab_run *r, int i, const struct pass *p) {
	struct lease_holder *h = &r->leases.holders[i];
	struct participant *w = &r->participants[i];
	pass_word(p, &h->first);
	pass_word(p, &h->held);
	pass_small(p, &h->n);
	for (int k = 0; k < LEASE_PIECES; k++) {
		pass_word(p, &h->pieces[k].begin);
		pass_small(p, &h->pieces[k].count);
	}
	pass_word(p, &w->first);
	pass_word(p, &w->sequences);
	pass_word(p, &w->ahead_sequences);
}

static void pass_leases(struct lab_run *r, const struct pass *p) {
	struct leases *l = &r->leases.all;
	uint64_t *const words[] = {&l->next, &l->granted, &l->consumed, &l->left_out};
	if (r->leases.round == 0)
		return;
	for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
		pass_word(p, words[k]);
	pass_small(p, &l->n_free);
	for (int k = 0; k < LAB_LEASES_FREE; k++) {
		pass_word(p, &l->free[k].begin);
		pass_word(p, &l->free[k].end);
	}
	for (int i = 0; i < r->n_replicas; i++)
		pass_holder(r, i, p);
}

static void write_all(struct lab_run *r, struct rv_writer *w) {
	const struct checkpoint_header h = checkpoint_header_of(r);
	const struct pass writes = {.to = w};
	checkpoint_header_write(&h, w);
	pass_run(r, &writes);
	for (int i = 0; i < r->n_replicas; i++) {
		size_t n = replica_state_bytes(r->replicas[i]);
		pass_worker(r, i, &writes);
		rv_write_u64(w, n);
		RV_ASSERT((size_t)(w->end - w->at) >= n);
		replica_save(r->replicas[i], w->at);
		w->at += n;
	}
	pass_leases(r, &writes);
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

static enum rv_err read_worker(struct lab_run *r, int i, struct rv_reader *in, struct rv_errtext *et) {
	struct participant *p = &r->participants[i];
	pass_worker(r, i, &(struct pass){.from = in});
	p->round = r->global.round;
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
	pass_run(r, &(struct pass){.from = &in});
	for (int i = 0; i < r->n_replicas; i++)
		RV_TRY(read_worker(r, i, &in, et));
	pass_leases(r, &(struct pass){.from = &in});
	if (r->leases.round > 0 && !leases_are_valid(&r->leases.all))
		return rv_fail(et, RV_E_CORRUPT, "its leases are impossible");
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
