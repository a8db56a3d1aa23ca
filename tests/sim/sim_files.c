/* sim_files.c: what is in a simulated worker's files. */
#include "sim.h"

#include "base/assert.h"

#include <string.h>

struct log_head {
	uint32_t attempt;
	struct rv_hash digest;
	struct contribution_form form;
};

struct snapshot_head {
	uint64_t round;
	struct rv_hash chain;
};

struct replica_head {
	uint64_t round, steps_done, tokens, first, sequences;
	struct rv_hash chain;
	struct sim_progress progress[SIM_MAX_FRAGMENTS];
};

static size_t vector_bytes(const struct sim *s) {
	return s->opt.n_params * sizeof(float);
}

/* ---- snapshots ---- */

uint8_t *files_snapshot(const struct sim *s, const struct global_state *g, size_t *n) {
	size_t vector = vector_bytes(s);
	struct snapshot_head head = {.round = g->round, .chain = g->chain};
	*n = sizeof head + 2 * vector;
	uint8_t *bytes = sim_alloc(*n);
	memcpy(bytes, &head, sizeof head);
	memcpy(bytes + sizeof head, g->theta, vector);
	memcpy(bytes + sizeof head + vector, g->state[0], vector);
	return bytes;
}

uint8_t *files_snapshot_of(const struct sim *s, const struct state_id *id, const uint8_t *payload, size_t *n) {
	struct snapshot_head head = {.round = id->round, .chain = id->chain};
	*n = sizeof head + 2 * vector_bytes(s);
	uint8_t *bytes = sim_alloc(*n);
	memcpy(bytes, &head, sizeof head);
	memcpy(bytes + sizeof head, payload, 2 * vector_bytes(s));
	return bytes;
}

struct rv_hash files_snapshot_chain(const uint8_t *bytes) {
	struct snapshot_head head;
	memcpy(&head, bytes, sizeof head);
	return head.chain;
}

void files_read_snapshot(const struct sim *s, const uint8_t *bytes, struct global_state *g) {
	struct snapshot_head head;
	size_t n = vector_bytes(s);
	memcpy(&head, bytes, sizeof head);
	g->round = head.round;
	g->chain = head.chain;
	memcpy(g->theta, bytes + sizeof head, n);
	memcpy(g->state[0], bytes + sizeof head + n, n);
}

/* ---- log entries ---- */

uint8_t *files_log(const struct sim *s, const struct state_log_info *info, const uint8_t *payload, size_t *n) {
	struct log_head head;
	memset(&head, 0, sizeof head);
	head.attempt = info->attempt;
	head.digest = info->digest;
	head.form = info->form;
	*n = sizeof head + sim_payload(s, info->round);
	uint8_t *bytes = sim_alloc(*n);
	memcpy(bytes, &head, sizeof head);
	memcpy(bytes + sizeof head, payload, *n - sizeof head);
	return bytes;
}

const uint8_t *files_log_bytes(const struct sim *s, const struct sim_file *f, struct state_log_info *info) {
	struct log_head head;
	if (f->n != sizeof head + sim_payload(s, f->round))
		return NULL;
	memcpy(&head, f->data, sizeof head);
	*info = (struct state_log_info){.round = f->round, .attempt = head.attempt, .digest = head.digest};
	info->form = head.form;
	return f->data + sizeof head;
}

/* ---- replicas ---- */

/* theta_local, what is kept with it, and what it began from where that is not theta. */
static int kept_vectors(const struct sim *s, const struct replica *r, float *out[2 + REPLICA_MAX_KEPT]) {
	int n = 0;
	out[n++] = r->local;
	for (int i = 0; i < r->n_kept; i++)
		out[n++] = r->kept[i];
	if (s->opt.gives_away)
		out[n++] = r->began;
	return n;
}

uint8_t *files_replica(const struct sim *s, const struct sim_worker *w, size_t *n) {
	struct replica_head head;
	float *vectors[2 + REPLICA_MAX_KEPT];
	int n_vectors = kept_vectors(s, &w->replica, vectors);
	memset(&head, 0, sizeof head);
	head.round = w->global.round;
	head.chain = w->global.chain;
	head.steps_done = w->participant.steps_done;
	head.tokens = w->participant.tokens;
	head.first = w->participant.first;
	head.sequences = w->participant.sequences;
	memcpy(head.progress, w->replica.progress, sizeof head.progress);
	*n = sizeof head + (size_t)n_vectors * vector_bytes(s);
	uint8_t *bytes = sim_alloc(*n);
	memcpy(bytes, &head, sizeof head);
	for (int i = 0; i < n_vectors; i++)
		memcpy(bytes + sizeof head + (size_t)i * vector_bytes(s), vectors[i], vector_bytes(s));
	return bytes;
}

void files_replica_info(const uint8_t *bytes, struct state_replica_info *info) {
	struct replica_head head;
	memcpy(&head, bytes, sizeof head);
	*info = (struct state_replica_info){.round = head.round,
										.chain = head.chain,
										.steps_done = head.steps_done,
										.tokens = head.tokens,
										.first = head.first,
										.sequences = head.sequences};
}

bool files_replica_waits(const struct sim *s, const uint8_t *bytes) {
	struct state_replica_info info;
	files_replica_info(bytes, &info);
	return (s->opt.overlap_steps > 0 || s->opt.feedback > 0) && info.steps_done == s->opt.steps_per_round;
}

void files_read_replica(const struct sim *s, const uint8_t *bytes, struct replica *r) {
	struct replica_head head;
	float *vectors[2 + REPLICA_MAX_KEPT];
	int n_vectors = kept_vectors(s, r, vectors);
	memcpy(&head, bytes, sizeof head);
	memcpy(r->progress, head.progress, sizeof r->progress);
	for (int i = 0; i < n_vectors; i++)
		memcpy(vectors[i], bytes + sizeof head + (size_t)i * vector_bytes(s), vector_bytes(s));
}

/* ---- what the run says of them ---- */

bool files_is_the_runs(const struct sim *s, const struct sim_file *f) {
	const struct sim_oracle *o = &s->oracle;
	size_t n = vector_bytes(s);
	struct state_log_info info;
	if (f->kind == FILE_LOG)
		return f->round < o->n_committed && files_log_bytes(s, f, &info) != NULL &&
			   rv_hash_equal(&info.digest, &o->digest[f->round]);
	const uint8_t *vectors = f->data + sizeof(struct snapshot_head);
	return f->round <= o->n_committed && memcmp(vectors, o->theta[f->round], n) == 0 &&
		   memcmp(vectors + n, o->v[f->round], n) == 0;
}
