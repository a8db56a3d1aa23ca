/* lab_leases.c: see lab_leases.h. */
#include "lab/run/lab_leases.h"

#include "base/assert.h"
#include "lab/run/lab_run.h"

_Static_assert((int)LAB_LEASES_REPLICAS == (int)LAB_MAX_WORKERS, "a holder for each replica");
_Static_assert((int)READING_MAX_PIECES == (int)LEASE_PIECES, "a reading has what a holder may have");

static void grant(struct lab_leases *l, int i) {
	(void)leases_grant(&l->all, (uint32_t)i, leases_lacks(&l->all, (uint32_t)i, l->round));
}

void lab_leases_init(struct lab_run *r) {
	struct lab_leases *l = &r->leases;
	const uint64_t workers_of_one = (uint64_t)(r->cfg.workers / r->n_replicas);
	l->round = run_config_lease_round(&r->cfg.run) * workers_of_one;
	leases_init(&l->all, l->holders, (uint32_t)r->n_replicas, l->free, LAB_LEASES_FREE);
	for (int i = 0; l->round > 0 && i < r->n_replicas; i++)
		grant(l, i);
}

static struct reading reading_of(const struct lease_holder *h) {
	struct reading r = {.first = h->first};
	for (uint32_t i = 0; i < h->n; i++)
		(void)reading_add(&r, h->pieces[i].begin, h->pieces[i].count);
	return r;
}

void lab_leases_read(struct lab_run *r, int i) {
	const struct reading reading = reading_of(&r->leases.holders[i]);
	const uint64_t next = replica_next(r->replicas[i]);
	if (r->leases.round == 0)
		return;
	if (r->participants[i].ops)
		participant_read(&r->participants[i], &reading);
	else
		replica_read(r->replicas[i], &reading, next > reading.first ? next : reading.first);
}

static void consume(struct lab_leases *l, int i, uint64_t first, uint64_t count) {
	struct lease_piece consumed[LEASE_PIECES];
	if (count > 0)
		(void)leases_consume(&l->all, (uint32_t)i, first, count, consumed);
}

void lab_leases_commit(struct lab_run *r, const bool *takes_part) {
	struct lab_leases *l = &r->leases;
	if (l->round == 0)
		return;
	for (int i = 0; i < r->n_replicas; i++)
		if (takes_part[i])
			consume(l, i, r->participants[i].first, r->participants[i].sequences);
	for (int i = 0; i < r->n_replicas; i++)
		if (takes_part[i])
			grant(l, i);
}

void lab_leases_commit_read(struct lab_run *r) {
	struct lab_leases *l = &r->leases;
	if (l->round == 0)
		return;
	for (int i = 0; i < r->n_replicas; i++) {
		RV_ASSERT(!r->participants[i].ops);
		consume(l, i, l->holders[i].first, replica_next(r->replicas[i]) - l->holders[i].first);
	}
	for (int i = 0; i < r->n_replicas; i++)
		grant(l, i);
}
