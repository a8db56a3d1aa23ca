/* sim_oracle_leases.c: what is read in a run whose text is published, judged by what steps read and
 * commits say, not by the leases.
 *
 * - A number of a member's stream is one position for ever, whatever process or coordinator.
 * - In the rounds of the final history each position is read by one contribution at most, and the
 *   member has read it.
 * - In the end each position that was ever leased is read, leased or free: none is lost. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for element `i` of a list of elements of `size` bytes; new ones are zero. */
static void *reach_to(void *list, size_t *cap, size_t i, size_t size) {
	if (i < *cap)
		return list;
	const size_t more = 2 * i + 256;
	uint8_t *bytes = realloc(list, more * size);
	RV_ASSERT(bytes != NULL);
	memset(bytes + *cap * size, 0, (more - *cap) * size);
	*cap = more;
	return bytes;
}

void oracle_reads(struct sim *s, int host, uint64_t number, uint64_t position) {
	struct sim_reads *r = &s->oracle.reads;
	r->position[host] = reach_to(r->position[host], &r->cap[host], number, sizeof(uint32_t));
	uint32_t *known = &r->position[host][number];
	if (*known != 0 && *known != position + 1)
		sim_fail(s, "w%d: number %llu of its stream is position %llu and was position %u", host,
				 (unsigned long long)number, (unsigned long long)position, *known - 1);
	*known = (uint32_t)position + 1;
}

static void commit_one(struct sim *s, int host, uint64_t number, uint64_t round) {
	struct sim_reads *r = &s->oracle.reads;
	const uint32_t read = number < r->cap[host] ? r->position[host][number] : 0;
	if (read == 0) {
		sim_fail(s, "round %llu has number %llu of the stream of w%d, which that never read", (unsigned long long)round,
				 (unsigned long long)number, host);
		return;
	}
	r->committed = reach_to(r->committed, &r->n_committed, read - 1, sizeof(uint16_t));
	uint16_t *in = &r->committed[read - 1];
	if (*in != 0)
		sim_fail(s, "position %u is read twice: in the commits of rounds %d and %llu, by w%d", read - 1, *in - 1,
				 (unsigned long long)round, host);
	*in = (uint16_t)(round + 1);
}

void oracle_leases_commit(struct sim *s, const struct core_record *rec) {
	for (int i = 0; i < rec->n_members && s->opt.leases; i++)
		for (uint64_t k = 0; k < rec->lease_count[i] && !s->failed; k++)
			commit_one(s, oracle_host_of(s, rec->members[i]), rec->lease_first[i] + k, rec->round);
}

void oracle_leases_rollback(struct sim *s, uint64_t from_round) {
	struct sim_reads *r = &s->oracle.reads;
	for (size_t i = 0; i < r->n_committed; i++)
		if (r->committed[i] > from_round)
			r->committed[i] = 0;
}

void oracle_leases_end(struct sim *s) {
	const struct sim_reads *r = &s->oracle.reads;
	uint64_t read = 0;
	if (!s->opt.leases || s->coordinator.core == NULL)
		return;
	const struct core_text text = core_text(s->coordinator.core);
	for (size_t i = 0; i < r->n_committed; i++)
		read += r->committed[i] != 0;
	if (read != text.consumed || text.left_out != 0)
		sim_fail(s,
				 "of %llu positions %llu are read by commits, and the coordinator takes %llu for read, %llu left out",
				 (unsigned long long)text.next, (unsigned long long)read, (unsigned long long)text.consumed,
				 (unsigned long long)text.left_out);
	s->stats.sequences += read;
}

void oracle_leases_release(struct sim *s) {
	struct sim_reads *r = &s->oracle.reads;
	for (int h = 0; h < SIM_MAX_WORKERS; h++)
		free(r->position[h]);
	free(r->committed);
}
