/* checkpoint_goes.c: see checkpoint_goes.h. */
#include "worker/state/checkpoint_goes.h"

#include "base/assert.h"
#include "base/planted.h"

bool checkpoint_goes_by_age(const struct checkpoint_keep *keep, const struct checkpoint_named *named,
							enum statestore_file file, uint64_t round) {
	RV_ASSERT(keep->logs_from <= keep->snapshots_from || keep->snapshots_from == 0 || RV_BUG("prune-early"));
	switch (file) {
	case STATE_FILE_SNAPSHOT:
		return !checkpoint_keeps_snapshot(keep, named, round);
	case STATE_FILE_LOG:
		return round < keep->logs_from;
	case STATE_FILE_PART:
		return round < keep->snapshots_from;
	case STATE_FILE_REPLICA:
	case STATE_FILE_MEANS: /* 2P of them, each replaced */
		return false;
	}
	RV_UNREACHABLE("a file of no kind");
}

bool checkpoint_goes_by_rollback(enum statestore_file file, uint64_t round, uint64_t to) {
	return (file == STATE_FILE_SNAPSHOT && round > to) || (file == STATE_FILE_LOG && round >= to);
}

static bool is_committed(const struct checkpoint_committed *c, const struct checkpoint_file *log) {
	RV_ASSERT(c->n == 0 || c->first + (uint64_t)c->n > c->first);
	return log && log->has_hash && log->round >= c->first && log->round - c->first < (uint64_t)c->n &&
		   rv_hash_equal(&log->hash, &c->digests[log->round - c->first]);
}

bool checkpoint_goes_by_history(const struct checkpoint_index *x, const struct checkpoint_committed *committed,
								uint64_t from, enum statestore_file file, uint64_t round) {
	RV_ASSERT(committed->n >= 0 && (committed->n == 0 || committed->digests));
	if (file != STATE_FILE_LOG)
		return file == STATE_FILE_REPLICA || (file == STATE_FILE_SNAPSHOT && round > from);
	bool doubtful = round >= from || !checkpoint_proved(x, round);
	return doubtful && !is_committed(committed, checkpoint_index_find(x, STATE_KIND_LOG, round));
}
