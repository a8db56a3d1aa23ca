/* checkpoint_index.c: see checkpoint_index.h. */
#include "worker/state/checkpoint_index.h"

#include "base/assert.h"
#include "base/chain.h"
#include "base/planted.h"

#include <string.h>

bool checkpoint_is_due(const struct checkpoint_schedule *s, uint64_t round) {
	return round > 0 && ((s->snapshot_every > 0 && round % s->snapshot_every == 0) || round == s->rounds);
}

void checkpoint_index_init(struct checkpoint_index *x, bool theta0, const struct rv_hash *run_hash) {
	x->snapshots.n = x->logs.n = 0;
	x->theta0 = theta0;
	x->chain0 = rv_chain_start(run_hash);
	x->replica_round = 0;
	x->replica_waits = false;
}

static const struct checkpoint_list *list_of(const struct checkpoint_index *x, enum state_kind kind) {
	RV_ASSERT(kind == STATE_KIND_SNAPSHOT || kind == STATE_KIND_LOG);
	return kind == STATE_KIND_SNAPSHOT ? &x->snapshots : &x->logs;
}

/* The first place whose round is not before `round`. */
static int place_of(const struct checkpoint_list *l, uint64_t round) {
	int low = 0, high = l->n;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (l->at[middle].round < round)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Rounds grow from place to place around `i`. */
static void check_order(const struct checkpoint_list *l, int i) {
	RV_ASSERT(l->n >= 0 && l->n <= CHECKPOINT_MAX_FILES && i >= 0 && i < l->n);
	RV_ASSERT(i == 0 || l->at[i - 1].round < l->at[i].round);
	RV_ASSERT(i + 1 == l->n || l->at[i].round < l->at[i + 1].round);
}

/* No two files of one round, in the order of rounds; a readable header has a hash. */
static void check_list(const struct checkpoint_list *l) {
	RV_ASSERT(l->n >= 0 && l->n <= CHECKPOINT_MAX_FILES);
	for (int i = 0; i < l->n; i++) {
		RV_ASSERT(i == 0 || l->at[i - 1].round < l->at[i].round);
		RV_ASSERT(l->at[i].damaged || l->at[i].has_hash);
		RV_ASSERT(l->at[i].has_hash == !rv_hash_is_zero(&l->at[i].hash));
	}
}

void checkpoint_check_invariants(const struct checkpoint_index *x) {
	check_list(&x->snapshots);
	check_list(&x->logs);
	for (int i = 0; i < x->snapshots.n; i++)
		RV_ASSERT(x->snapshots.at[i].attempt == 0);
	RV_ASSERT(!rv_hash_is_zero(&x->chain0));
}

static struct checkpoint_file *find(struct checkpoint_list *l, uint64_t round) {
	int i = place_of(l, round);
	return i < l->n && l->at[i].round == round ? &l->at[i] : NULL;
}

const struct checkpoint_file *checkpoint_index_find(const struct checkpoint_index *x, enum state_kind kind,
													uint64_t round) {
	const struct checkpoint_list *l = list_of(x, kind);
	int i = place_of(l, round);
	return i < l->n && l->at[i].round == round ? &l->at[i] : NULL;
}

/* Of more files than there are places for, the oldest are forgotten. */
static void insert(struct checkpoint_list *l, const struct checkpoint_file *file) {
	int i = place_of(l, file->round);
	if (l->n == CHECKPOINT_MAX_FILES) {
		if (i == 0)
			return;
		memmove(&l->at[0], &l->at[1], (size_t)(i - 1) * sizeof l->at[0]);
		l->at[i - 1] = *file;
		check_order(l, i - 1);
		return;
	}
	memmove(&l->at[i + 1], &l->at[i], (size_t)(l->n - i) * sizeof l->at[0]);
	l->at[i] = *file;
	l->n++;
	check_order(l, i);
}

void checkpoint_index_add(struct checkpoint_index *x, enum state_kind kind, uint64_t round, uint32_t attempt,
						  const struct rv_hash *hash) {
	struct checkpoint_list *l = kind == STATE_KIND_SNAPSHOT ? &x->snapshots : &x->logs;
	struct checkpoint_file file = {.round = round, .attempt = attempt, .damaged = !hash, .has_hash = hash};
	if (hash)
		file.hash = *hash;
	RV_ASSERT(kind == STATE_KIND_LOG || attempt == 0);
	RV_ASSERT(!hash || !rv_hash_is_zero(hash));
	struct checkpoint_file *known = find(l, round);
	if (known)
		*known = file;
	else
		insert(l, &file);
}

void checkpoint_index_damaged(struct checkpoint_index *x, enum state_kind kind, uint64_t round) {
	struct checkpoint_file *known = find(kind == STATE_KIND_SNAPSHOT ? &x->snapshots : &x->logs, round);
	if (known)
		known->damaged = true;
}

/* ---- what is proved ---- */

bool checkpoint_start_before(const struct checkpoint_index *x, uint64_t round, struct checkpoint_start *out) {
	for (int i = x->snapshots.n - 1; i >= 0; i--) {
		const struct checkpoint_file *snapshot = &x->snapshots.at[i];
		if (snapshot->round > round || snapshot->damaged)
			continue;
		RV_ASSERT(snapshot->has_hash);
		*out = (struct checkpoint_start){.round = snapshot->round, .snapshot = true, .chain = snapshot->hash};
		return true;
	}
	*out = (struct checkpoint_start){.round = 0, .chain = x->chain0};
	return x->theta0;
}

static const struct checkpoint_file *whole_log(const struct checkpoint_index *x, uint64_t round) {
	const struct checkpoint_file *log = checkpoint_index_find(x, STATE_KIND_LOG, round);
	return log && !log->damaged ? log : NULL;
}

/* Something is there that came after the commit of `round`. */
static bool has_later(const struct checkpoint_index *x, uint64_t round) {
	return x->replica_round > round || checkpoint_index_find(x, STATE_KIND_LOG, round + 1) ||
		   checkpoint_index_find(x, STATE_KIND_SNAPSHOT, round + 1);
}

bool checkpoint_proved(const struct checkpoint_index *x, uint64_t round) {
	const struct checkpoint_file *log = whole_log(x, round);
	return log && (log->attempt == 0 || has_later(x, round) || RV_BUG("replay-a-vote"));
}

uint64_t checkpoint_reach(const struct checkpoint_index *x, const struct checkpoint_start *from) {
	struct rv_hash chain = from->chain;
	uint64_t round = from->round, agreed = round;
	RV_ASSERT(from->snapshot || from->round == 0);
	checkpoint_check_invariants(x);
	while (checkpoint_proved(x, round)) {
		chain = rv_chain_next(&chain, &whole_log(x, round)->hash);
		round++;
		const struct checkpoint_file *snapshot = checkpoint_index_find(x, STATE_KIND_SNAPSHOT, round);
		if (!snapshot || !snapshot->has_hash)
			continue;
		if (!rv_hash_equal(&snapshot->hash, &chain))
			return agreed;
		agreed = round;
	}
	return round;
}

uint64_t checkpoint_goal(const struct checkpoint_index *x, const struct checkpoint_start *from) {
	uint64_t reach = checkpoint_reach(x, from);
	RV_ASSERT(reach >= from->round && (reach == from->round || whole_log(x, reach - 1)));
	bool passes = x->replica_waits && x->replica_round >= from->round && x->replica_round + 1 == reach;
	return passes ? x->replica_round : reach;
}

bool checkpoint_is_vote(const struct checkpoint_index *x, uint64_t round) {
	return whole_log(x, round) && !checkpoint_proved(x, round);
}

bool checkpoint_is_at_hand(const struct checkpoint_index *x, uint64_t round) {
	bool waited_for = x->replica_waits && x->replica_round == round && whole_log(x, round);
	return waited_for || checkpoint_is_vote(x, round);
}

/* ---- retention ---- */

/* The `n`th newest whole snapshot at or before `round`, or the oldest of them; false: there is
 * none. */
static bool nth_snapshot_before(const struct checkpoint_index *x, uint64_t round, uint64_t n, uint64_t *out) {
	bool found = false;
	RV_ASSERT(n > 0);
	for (int i = x->snapshots.n - 1; i >= 0 && n > 0; i--) {
		const struct checkpoint_file *snapshot = &x->snapshots.at[i];
		if (snapshot->round > round || snapshot->damaged)
			continue;
		*out = snapshot->round;
		found = true;
		n--;
	}
	return found;
}

struct checkpoint_keep checkpoint_retention(const struct checkpoint_index *x, const struct checkpoint_policy *policy,
											const struct checkpoint_named *named) {
	struct checkpoint_keep keep = {0, 0};
	checkpoint_check_invariants(x);
	RV_ASSERT(policy->keep_snapshots <= CHECKPOINT_MAX_KEEP && policy->keep_log <= CHECKPOINT_MAX_KEEP);
	RV_ASSERT(named->logs_from <= named->vouched_round);
	if (policy->keep_snapshots == 0 ||
		!nth_snapshot_before(x, named->vouched_round, policy->keep_snapshots, &keep.snapshots_from))
		return keep;
	uint64_t end = x->logs.n > 0 ? x->logs.at[x->logs.n - 1].round + 1 : 0;
	uint64_t wanted_from = end > policy->keep_log ? end - policy->keep_log : 0;
	keep.logs_from = wanted_from < keep.snapshots_from ? wanted_from : keep.snapshots_from;
	if (named->logs_from < keep.logs_from)
		keep.logs_from = named->logs_from;
	RV_ASSERT(keep.snapshots_from <= named->vouched_round);
	RV_ASSERT(keep.logs_from <= keep.snapshots_from); /* what follows a snapshot that stays, stays */
	if (RV_BUG("prune-early"))
		keep.logs_from = end;
	return keep;
}

bool checkpoint_keeps_snapshot(const struct checkpoint_keep *keep, const struct checkpoint_named *named,
							   uint64_t round) {
	RV_ASSERT(named->n_snapshots >= 0 && named->n_snapshots <= CHECKPOINT_NAMED_SNAPSHOTS);
	for (int i = 0; i < named->n_snapshots; i++)
		if (named->snapshots[i] == round)
			return true;
	return round >= keep->snapshots_from;
}
