/* round_fixture.h: a run as the coordinator would describe it, for the tests of the worker's round
 * core. */
#ifndef TESTS_WORKER_ROUND_FIXTURE_H
#define TESTS_WORKER_ROUND_FIXTURE_H

#include "worker/round/round.h"

enum { FIXTURE_ROUNDS = 40, FIXTURE_CHUNKS = 12, FIXTURE_H = 5, FIXTURE_SELF = 2 };

/* The committed digest of a round, state_hash(round), and the vouched full hash, of this one
 * fictitious run. */
struct rv_hash digest_of(uint64_t round);
struct rv_hash chain_at(uint64_t round);
struct rv_hash full_at(uint64_t round);

void document_make(struct document *d, uint64_t seq, enum run_phase phase, uint64_t round, uint64_t snapshot_round);
/* It lists digests from round `from` on, before its snapshot. */
void document_older(struct document *d, uint64_t from);
/* `members`: a set of member numbers. */
void document_members(struct document *d, uint64_t members);

#endif
