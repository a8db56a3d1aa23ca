/* round_fixture.c: see round_fixture.h. */
#include "round_fixture.h"

#include "base/chain.h"

#include <stdio.h>
#include <string.h>

struct rv_hash digest_of(uint64_t round) {
	uint64_t v[2] = {0x5eed, round};
	return rv_hash_of(v, sizeof v);
}

static struct rv_hash run_hash(void) {
	return rv_hash_of("a run", 5);
}

struct rv_hash chain_at(uint64_t round) {
	struct rv_hash run = run_hash(), chain = rv_chain_start(&run);
	for (uint64_t r = 0; r < round; r++) {
		struct rv_hash digest = digest_of(r);
		chain = rv_chain_next(&chain, &digest);
	}
	return chain;
}

struct rv_hash full_at(uint64_t round) {
	uint64_t v[2] = {0xf011, round};
	return rv_hash_of(v, sizeof v);
}

void document_make(struct document *d, uint64_t seq, enum run_phase phase, uint64_t round, uint64_t snapshot_round) {
	memset(d, 0, sizeof *d);
	memset(d->run_id, 7, sizeof d->run_id);
	d->seq = seq;
	d->phase = (uint8_t)phase;
	d->round = round;
	d->attempt = phase == RUN_REDUCE;
	d->final_round = FIXTURE_ROUNDS;
	d->run_hash = run_hash();
	d->chain = chain_at(round);
	d->snapshot_round = snapshot_round;
	d->snapshot_hash = snapshot_round > 0 ? full_at(snapshot_round) : (struct rv_hash){0};
	d->snapshot_chain = chain_at(snapshot_round);
	d->n_log = (uint16_t)(round - snapshot_round);
	for (uint16_t i = 0; i < d->n_log; i++)
		d->log[i] = digest_of(snapshot_round + i);
	d->n_chunks = phase == RUN_REDUCE ? FIXTURE_CHUNKS : 0;
}

void document_older(struct document *d, uint64_t from) {
	d->n_older = (uint16_t)(d->snapshot_round - from);
	d->older_chain = chain_at(from);
	for (uint16_t i = 0; i < d->n_older; i++)
		d->older[i] = digest_of(from + i);
}

void document_members(struct document *d, uint64_t members) {
	d->n_members = 0;
	for (uint32_t m = 0; m < NET_MAX_ROW; m++) {
		if (!(members >> m & 1))
			continue;
		struct member_ref *ref = &d->members[d->n_members++];
		ref->member = m;
		ref->place = (uint16_t)(99 + d->n_members); /* as in a later row */
		ref->weight = d->phase == RUN_REDUCE;
		ref->n_candidates = 1;
		snprintf(ref->candidates[0].addr, sizeof ref->candidates[0].addr, "127.0.0.1:%u", 1000 + m);
	}
}
