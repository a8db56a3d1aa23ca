/* sim_means.c: what encoding means lost (outer/mean_residual.h): an owner's side in the simulator,
 * and the oracle, which judges it by the records alone.
 *
 * - An owner has, to the bit, what the encoding of the chunk left in the last committed round that
 *   exchanged it, if it owned it then; it has nothing of a chunk that another one owned.
 * - It has lost it only if it had reason to: a result that it fetched, an installed state, a
 *   restart without the files that prove it, a commit of another attempt than its last one.
 * - The committed mean is encoded with what its owner had. After a rollback owners say what they
 *   have. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static uint32_t fragment_of(const struct sim *s, uint64_t round) {
	return fragment_of_round(&s->global_config.fragments, round);
}

static uint32_t chunk_of(const struct sim *s, uint64_t round, uint32_t i) {
	const uint32_t chunk = fragment_chunk(&s->global_config.fragments, fragment_of(s, round), i);
	RV_ASSERT(chunk < SIM_MAX_CHUNKS);
	return chunk;
}

static uint32_t chunks_of(const struct sim *s, uint64_t round) {
	return global_round_chunks(&s->global_config, round).n_chunks;
}

/* ---- files ---- */

struct directory {
	struct sim *s;
	int host;
};

static bool log_attempt(void *ctx, uint64_t round, uint32_t *attempt) {
	const struct directory *d = ctx;
	struct state_log_info info;
	const struct sim_file *f = disk_find(&d->s->workers[d->host].disk, FILE_LOG, round);
	if (f == NULL || files_log_bytes(d->s, f, &info) == NULL)
		return false;
	*attempt = info.attempt;
	return true;
}

static struct blob *load(void *ctx, uint64_t round) {
	const struct directory *d = ctx;
	const uint64_t number = means_file_of(&d->s->global_config, round);
	const struct sim_file *f = disk_find(&d->s->workers[d->host].disk, FILE_MEANS, number);
	struct blob *b = f != NULL ? blob_new(f->n) : NULL;
	RV_ASSERT(f == NULL || b != NULL);
	if (f != NULL)
		memcpy(b->data, f->data, f->n);
	return b;
}

static void refuse(void *ctx, uint64_t round, const struct rv_errtext *text) {
	const struct directory *d = ctx;
	sim_fail(d->s, "w%d: its residual of means of round %llu is none: %s", d->host, (unsigned long long)round,
			 text->text);
}

/* Returns true if the disk proves what the commit of `round` left, as the oracle knows it. */
static bool is_on_disk(struct sim *s, int host, uint64_t round) {
	struct directory d = {s, host};
	uint64_t of_round;
	uint32_t attempt, of_attempt;
	const uint32_t committed = s->oracle.means.attempt[round];
	struct blob *b = log_attempt(&d, round, &attempt) && attempt == committed ? load(&d, round) : NULL;
	if (b == NULL)
		return false;
	memcpy(&of_round, b->data, sizeof of_round); /* little-endian, as everything here */
	memcpy(&of_attempt, b->data + sizeof of_round, sizeof of_attempt);
	blob_unref(b);
	return of_round == round && of_attempt == committed;
}

static void may_lose_what_is_not_on_disk(struct sim *s, int host) {
	const uint64_t n = s->oracle.n_committed;
	for (uint64_t r = n > s->opt.fragments ? n - s->opt.fragments : 0; r < n; r++)
		if (s->workers[host].global.round < r || !is_on_disk(s, host, r))
			s->oracle.means.may_lose[host][fragment_of(s, r)] = true;
}

void means_open(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct directory d = {s, host};
	const struct means_files files = {.ctx = &d, .log_attempt = log_attempt, .load = load, .refuse = refuse};
	RV_ASSERT(mean_residual_init(&w->means, &s->run, &s->global_config, NULL) == RV_OK);
	means_recover(&files, &s->global_config, w->global.round, &w->means);
	may_lose_what_is_not_on_disk(s, host);
}

/* ---- the session core's links ---- */

bool means_left(void *ctx, struct blob **out) {
	const struct sim_worker *w = ctx;
	const struct global_config *g = &w->sim->global_config;
	*out = mean_residual_is_on(&w->means) ? blob_new(mean_residual_saved_bytes(&w->means, g)) : NULL;
	if (*out != NULL)
		mean_residual_save(&w->means, g, (*out)->data);
	return true;
}

void means_commit(void *ctx, uint64_t round, uint32_t attempt) {
	struct sim_worker *w = ctx;
	mean_residual_commit(&w->means, &w->sim->global_config, round, attempt);
	if (attempt != w->sim->oracle.means.attempt[round]) /* 0: fetched */
		w->sim->oracle.means.may_lose[w->host][fragment_of(w->sim, round)] = true;
}

void means_forget(void *ctx) {
	struct sim_worker *w = ctx;
	mean_residual_forget(&w->means, &w->sim->global_config);
	for (int i = 0; i < SIM_MAX_FRAGMENTS; i++)
		w->sim->oracle.means.may_lose[w->host][i] = true;
}

/* ---- the oracle ---- */

void means_oracle_init(struct sim *s) {
	struct sim_means *m = &s->oracle.means;
	m->kept = sim_alloc(s->opt.n_params * sizeof(float));
	m->next = sim_alloc(s->opt.n_params * sizeof(float));
	memset(m->owner, 0xff, sizeof m->owner); /* SIM_NOBODY */
}

void means_oracle_release(struct sim *s) {
	free(s->oracle.means.kept);
	free(s->oracle.means.next);
}

/* Judges what the owner of chunk i of r's round has when the attempt begins. */
static void check_chunk(struct sim *s, int host, const struct sim_roster *r, uint32_t i) {
	struct sim_means *o = &s->oracle.means;
	const struct mean_residual *m = &s->workers[host].means;
	const uint32_t chunk = chunk_of(s, r->round, i);
	const struct chunking c = global_round_chunks(&s->global_config, r->round);
	const size_t at = global_round_chunk_at(&s->global_config, r->round, i),
				 bytes = chunking_len(&c, i) * sizeof(float);
	if (o->unknown[chunk] && m->holds[chunk]) {
		memcpy(o->kept + at, m->kept + at, bytes);
		o->owner[chunk] = (int16_t)host;
	}
	if (m->holds[chunk] && o->owner[chunk] != host)
		sim_fail(s, "w%d: has a residual of chunk %u in round %llu, whose last mean w%d made", host, i,
				 (unsigned long long)r->round, o->owner[chunk]);
	else if (m->holds[chunk] && memcmp(m->kept + at, o->kept + at, bytes) != 0)
		sim_fail(s, "w%d: its residual of chunk %u in round %llu is not what its last committed mean left", host, i,
				 (unsigned long long)r->round);
	else if (!m->holds[chunk] && o->owner[chunk] == host && !o->unknown[chunk] &&
			 !o->may_lose[host][fragment_of(s, r->round)])
		sim_fail(s, "w%d: lost its residual of chunk %u in round %llu", host, i, (unsigned long long)r->round);
}

void means_begin(struct sim *s, int host, const struct document *d) {
	struct sim_worker *w = &s->workers[host];
	struct sim_roster *r = roster_of(s, d->round, d->attempt);
	mean_residual_prove(&w->means, &s->global_config, d->round, d->former_attempt);
	mean_residual_begin(&w->means, &s->global_config, d->round, d->attempt);
	if (!mean_residual_is_on(&w->means) || r == NULL || r->round < s->oracle.n_committed)
		return;
	for (uint32_t i = 0; i < chunks_of(s, r->round) && !s->failed; i++) {
		if (roster_encoder(s, r, i) != host)
			continue;
		check_chunk(s, host, r, i);
		r->held[i] = w->means.holds[chunk_of(s, r->round, i)];
		s->stats.mean_residuals += r->held[i];
	}
}

const struct feedback *means_oracle_of(struct sim *s, const struct sim_roster *r, uint32_t i, struct feedback *room) {
	struct sim_means *m = &s->oracle.means;
	const size_t at = global_round_chunk_at(&s->global_config, r->round, i);
	if (s->opt.mean_feedback == 0)
		return NULL;
	*room =
		(struct feedback){.beta = s->opt.mean_feedback, .kept = r->held[i] ? m->kept + at : NULL, .left = m->next + at};
	return room;
}

/* Returns true if the process that runs has what it made in that attempt: its own, or of a vote
 * that it found on its disk. */
static bool has_made(const struct sim_worker *w, const struct sim_roster *r) {
	return w->session != NULL && w->means.round == r->round && w->means.attempt == r->attempt;
}

void means_oracle_commit(struct sim *s, const struct sim_roster *r) {
	struct sim_means *m = &s->oracle.means;
	const struct chunking c = global_round_chunks(&s->global_config, r->round);
	m->attempt[r->round] = r->attempt;
	for (uint32_t i = 0; s->opt.mean_feedback > 0 && i < c.n_chunks; i++) {
		const size_t at = global_round_chunk_at(&s->global_config, r->round, i);
		const uint32_t chunk = chunk_of(s, r->round, i);
		memcpy(m->kept + at, m->next + at, chunking_len(&c, i) * sizeof(float));
		m->owner[chunk] = (int16_t)roster_encoder(s, r, i);
		m->unknown[chunk] = false;
	}
	for (int host = 0; host < s->opt.n_workers; host++)
		m->may_lose[host][fragment_of(s, r->round)] = !has_made(&s->workers[host], r);
}

void means_oracle_rollback(struct sim *s) {
	memset(s->oracle.means.unknown, true, sizeof s->oracle.means.unknown);
}
