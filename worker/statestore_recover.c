/* statestore_recover.c: from the files in --dir to the latest shared state that they prove. */
#include "worker/statestore_internal.h"

#include "base/assert.h"

#include <stdlib.h>

/* Opens, checks all of it, then loads: *g stays as it is unless the file is whole. */
static enum rv_err load_base(const struct statestore *s, uint64_t round, struct global_state *g,
							 struct rv_hash *full_hash, struct rv_errtext *et) {
	struct state_file *f;
	RV_TRY(statestore_open(s, STATE_KIND_BASE, round, &f, et));
	enum rv_err e = state_file_verify(f, et);
	if (e == RV_OK)
		e = state_file_load_base(f, g, et);
	*full_hash = state_file_id(f)->expect;
	state_file_free(f);
	return e;
}

/* The newest base that is whole, into *g; false: there is none. */
static bool load_newest_base(const struct statestore *s, struct checkpoint_index *x, struct global_state *g,
							 struct statestore_found *out) {
	while (checkpoint_start_before(x, UINT64_MAX, &out->start) && out->start.base) {
		struct rv_errtext et = {0};
		enum rv_err e = load_base(s, out->start.round, g, &out->full_hash, &et);
		if (e == RV_OK) {
			out->full_round = g->round;
			return true;
		}
		checkpoint_index_damaged(x, STATE_KIND_BASE, out->start.round);
		statestore_set_aside(s, STATE_FILE_BASE, out->start.round, e, &et);
	}
	return false;
}

/* Without a base *g is theta0, or nothing. */
static enum rv_err find_start(const struct statestore *s, struct checkpoint_index *x, struct global_state *g,
							  struct statestore_found *out, struct rv_errtext *et) {
	if (load_newest_base(s, x, g, out))
		return RV_OK;
	out->lacks_state = s->theta0 == THETA0_IS_LACKED;
	return s->theta0 == THETA0_GIVEN ? statestore_write_base(s, g, NULL, et) : RV_OK;
}

static void log_is_useless(const struct statestore *s, struct checkpoint_index *x, uint64_t round, enum rv_err why,
						   const struct rv_errtext *text) {
	checkpoint_index_damaged(x, STATE_KIND_LOG, round);
	statestore_set_aside(s, STATE_FILE_LOG, round, why, text);
}

/* false: it cannot be used, which has been told. */
static bool load_log(const struct statestore *s, struct checkpoint_index *x, uint64_t round,
					 struct state_log_info *info, struct blob **reduced) {
	struct rv_errtext et = {0};
	struct state_file *f;
	enum rv_err e = statestore_open(s, STATE_KIND_LOG, round, &f, &et);
	if (e == RV_OK) {
		*info = (struct state_log_info){
			.round = round, .attempt = state_file_attempt(f), .digest = state_file_id(f)->expect};
		e = state_file_load_log(f, reduced, &et);
		state_file_free(f);
	}
	if (e == RV_OK)
		return true;
	log_is_useless(s, x, round, e, &et);
	return false;
}

/* The process died before it had written this base, and yet its hash is about to be told, perhaps vouched for: then
 * joiners will ask for the file. */
static void keep_base(const struct statestore *s, const struct checkpoint_index *x, const struct global_state *g) {
	const struct checkpoint_file *known = checkpoint_index_find(x, STATE_KIND_BASE, g->round);
	struct rv_errtext et = {0};
	if (known && !known->damaged)
		return;
	enum rv_err e = statestore_write_base(s, g, NULL, &et);
	if (e != RV_OK && s->notice)
		s->notice(s->notice_ctx, e, et.text);
}

/* By what is of use; peers have the rest. */
static void replay(const struct statestore *s, struct checkpoint_index *x, struct global_state *g,
				   struct statestore_found *out) {
	x->replica_waits = x->replica_waits && out->has_replica; /* whole, and not its header alone */
	uint64_t goal = checkpoint_goal(x, &out->start);
	while (g->round < goal) {
		struct state_log_info info;
		struct blob *reduced;
		uint64_t round = g->round;
		if (!load_log(s, x, round, &info, &reduced))
			return;
		struct rv_errtext text = {0};
		enum rv_err e = global_apply(g, reduced->data, &info.digest, &text);
		blob_unref(reduced);
		if (e != RV_OK) { /* nothing has changed */
			log_is_useless(s, x, round, e, &text);
			return;
		}
		if (statestore_is_checked(s, g->round)) {
			out->full_round = g->round;
			out->full_hash = global_full_hash(g);
			keep_base(s, x, g);
		}
	}
	if (checkpoint_is_at_hand(x, g->round))
		out->has_log = load_log(s, x, g->round, &out->log, &out->reduced);
}

static void load_replica(const struct statestore *s, struct statestore_found *out) {
	struct rv_errtext et = {0};
	enum rv_err e = statestore_read_replica(s, &out->replica, &out->replica_file, &out->replica_payload, &et);
	out->has_replica = e == RV_OK;
	if (e != RV_OK && e != RV_E_NOTFOUND)
		statestore_set_aside(s, STATE_FILE_REPLICA, 0, e, &et);
}

/* The directory is synced first: a process that was killed between renaming a file and that left one that is there, and
 * that a power cut may yet take back. What is found here is told to others, as a vote above all. */
static enum rv_err recover(const struct statestore *s, struct checkpoint_index *x, struct global_state *g,
						   struct statestore_found *out, struct rv_errtext *et) {
	RV_TRY(statestore_sync(s, et));
	RV_TRY(statestore_scan_with(s, x, statestore_set_aside, et));
	RV_TRY(find_start(s, x, g, out, et));
	if (out->lacks_state)
		return RV_OK;
	load_replica(s, out);
	replay(s, x, g, out);
	return RV_OK;
}

enum rv_err statestore_recover(const struct statestore *s, struct global_state *g, struct statestore_found *out,
							   struct rv_errtext *et) {
	*out = (struct statestore_found){0};
	struct checkpoint_index *x = statestore_new_index(s, et);
	if (!x)
		return RV_E_NOMEM;
	statestore_remove_leftovers(s);
	enum rv_err e = recover(s, x, g, out, et);
	free(x);
	return e;
}
