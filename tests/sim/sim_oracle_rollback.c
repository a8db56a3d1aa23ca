/* sim_oracle_rollback.c: committed rounds are taken back only when what they made can be had from
 * no disk any more; and then the run is what it was before them. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static bool is_on_a_disk(const struct sim *s, enum file_kind kind, uint64_t round) {
	for (int h = 0; h < s->opt.n_workers; h++) {
		const struct sim_file *f = disk_find(&s->workers[h].disk, kind, round);
		if (f != NULL && files_is_the_runs(s, f))
			return true;
	}
	return false;
}

/* Their steps are in no commit any more. */
static void uncount_steps(struct sim_oracle *o, uint64_t from_round) {
	for (int h = 0; h < SIM_MAX_WORKERS; h++)
		for (size_t i = 0; i < o->cap_counted[h]; i++)
			if (o->counted[h][i] > from_round)
				o->counted[h][i] = 0;
}

static void return_to(struct sim *s, uint64_t round) {
	struct sim_oracle *o = &s->oracle;
	size_t bytes = s->opt.n_params * sizeof(float);
	for (uint64_t r = round + 1; r <= o->n_committed; r++) {
		free(o->theta[r]);
		free(o->v[r]);
		o->theta[r] = o->v[r] = NULL;
	}
	o->n_committed = round;
	o->global.round = round;
	o->global.chain = o->chain[round];
	memcpy(o->global.theta, o->theta[round], bytes);
	memcpy(o->global.state[0], o->v[round], bytes);
	o->snapshot_round = o->snapshot_round > round ? 0 : o->snapshot_round;
}

void oracle_rollback(struct sim *s, const struct core_record *rec) {
	struct sim_oracle *o = &s->oracle;
	unsigned long long round = rec->round;
	bool by_force = s->term_wanted > o->term; /* FAULT_ROLLBACK: the operator says so, whatever there is */
	if (rec->round > o->n_committed || !rv_hash_equal(&rec->chain, &o->chain[rec->round]))
		sim_fail(s, "rolled back to a state of round %llu that is not the run's", round);
	else if (rec->term <= o->term)
		sim_fail(s, "term %llu after term %llu", (unsigned long long)rec->term, (unsigned long long)o->term);
	else if (!by_force && rec->round < o->n_committed && is_on_a_disk(s, FILE_LOG, rec->round))
		sim_fail(s, "round %llu is taken back, although its reduced bytes are still on a disk", round);
	for (uint64_t r = rec->round + 1; r <= o->n_committed && !s->failed && !by_force; r++)
		if (is_on_a_disk(s, FILE_SNAPSHOT, r))
			sim_fail(s, "rolled back to round %llu, although the state of round %llu is still on a disk", round,
					 (unsigned long long)r);
	if (s->failed)
		return;
	s->stats.rollbacks++;
	o->term = rec->term;
	rosters_forget(o, rec->round);
	uncount_steps(o, rec->round);
	oracle_leases_rollback(s, rec->round);
	return_to(s, rec->round);
	oracle_forgets_residuals(s);
	means_oracle_rollback(s);
	oracle_stranded_rollback(s);
	sim_say(s, SIM_COORDINATOR, "rolled back to round %llu: term %llu", round, (unsigned long long)rec->term);
}
