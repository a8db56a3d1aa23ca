/* recovery.c: see recovery.h. */
#include "worker/state/recovery.h"

#include "base/assert.h"

struct recovery {
	const struct recovery_files *files;
	const struct recovery_config *cfg;
	struct checkpoint_index *x;
	struct global_state *g;
	struct recovered *out;
};

static void set_aside(const struct recovery *r, enum state_kind kind, uint64_t round, enum rv_err why,
					  const struct rv_errtext *text) {
	RV_ASSERT(why != RV_OK);
	checkpoint_index_damaged(r->x, kind, round);
	r->files->set_aside(r->files->ctx, kind, round, why, text);
}

/* Loads the newest snapshot that is whole; false: there is none. */
static bool load_newest_snapshot(const struct recovery *r) {
	struct checkpoint_start *start = &r->out->start;
	while (checkpoint_start_before(r->x, UINT64_MAX, start) && start->snapshot) {
		struct rv_errtext et = {0};
		enum rv_err e = r->files->load_snapshot(r->files->ctx, start->round, r->g, &r->out->full_hash, &et);
		if (e == RV_OK) {
			RV_ASSERT(r->g->round == start->round);
			r->out->full_round = r->g->round;
			return true;
		}
		set_aside(r, STATE_KIND_SNAPSHOT, start->round, e, &et);
	}
	return false;
}

/* Without a snapshot *g is theta0, or nothing. */
static enum rv_err find_start(const struct recovery *r, struct rv_errtext *et) {
	if (load_newest_snapshot(r))
		return RV_OK;
	RV_ASSERT(r->g->round == 0 && !r->out->start.snapshot);
	r->out->lacks_state = r->cfg->theta0 == THETA0_IS_LACKED;
	return r->cfg->theta0 == THETA0_GIVEN ? r->files->write_snapshot(r->files->ctx, r->g, et) : RV_OK;
}

/* Loads a log entry. Returns false if it is unusable, after setting it aside. */
static bool load_log(const struct recovery *r, uint64_t round, struct state_log_info *info, struct blob **reduced) {
	struct rv_errtext et = {0};
	enum rv_err e = r->files->load_log(r->files->ctx, round, info, reduced, &et);
	if (e != RV_OK) {
		set_aside(r, STATE_KIND_LOG, round, e, &et);
		return false;
	}
	RV_ASSERT(info->round == round && *reduced);
	return true;
}

/* Writes a snapshot that the killed process did not write: its hash will be reported, and if it is
 * vouched for, joiners ask for the file. */
static void keep_snapshot(const struct recovery *r) {
	const struct checkpoint_file *known = checkpoint_index_find(r->x, STATE_KIND_SNAPSHOT, r->g->round);
	struct rv_errtext et = {0};
	if (known && !known->damaged)
		return;
	enum rv_err e = r->files->write_snapshot(r->files->ctx, r->g, &et);
	if (e != RV_OK)
		r->files->not_written(r->files->ctx, e, &et);
}

/* Replays one entry. Returns false if it is unusable: peers have it. */
static bool replay_one(const struct recovery *r) {
	struct state_log_info info;
	struct blob *reduced;
	uint64_t round = r->g->round;
	struct rv_errtext text = {0};
	if (!load_log(r, round, &info, &reduced))
		return false;
	enum rv_err e = global_apply(r->g, reduced->data, &info.digest, &text);
	blob_unref(reduced);
	if (e != RV_OK) { /* nothing has changed */
		set_aside(r, STATE_KIND_LOG, round, e, &text);
		return false;
	}
	RV_ASSERT(r->g->round == round + 1 &&
			  rv_hash_equal(&info.digest, &checkpoint_index_find(r->x, STATE_KIND_LOG, round)->hash));
	if (!checkpoint_is_due(&r->cfg->schedule, r->g->round))
		return true;
	r->out->full_round = r->g->round;
	r->out->full_hash = global_full_hash(r->g);
	keep_snapshot(r);
	return true;
}

static void replay(const struct recovery *r) {
	r->x->replica_waits = r->x->replica_waits && r->out->has_replica; /* whole, and not its header alone */
	uint64_t goal = checkpoint_goal(r->x, &r->out->start);
	RV_ASSERT(goal >= r->g->round);
	while (r->g->round < goal)
		if (!replay_one(r))
			return;
	RV_ASSERT(!r->out->has_log && !r->out->reduced);
	if (checkpoint_is_at_hand(r->x, r->g->round))
		r->out->has_log = load_log(r, r->g->round, &r->out->log, &r->out->reduced);
}

enum rv_err recovery_run(const struct recovery_files *files, const struct recovery_config *cfg,
						 struct checkpoint_index *x, struct global_state *g, struct recovered *out,
						 struct rv_errtext *et) {
	const struct recovery r = {files, cfg, x, g, out};
	RV_ASSERT(g->round == 0);
	*out = (struct recovered){0};
	RV_TRY(find_start(&r, et));
	if (out->lacks_state)
		return RV_OK;
	files->load_replica(files->ctx, out);
	replay(&r);
	RV_ASSERT(g->round >= out->start.round && (!out->has_log || out->log.round == g->round));
	RV_ASSERT(out->full_round <= g->round && out->has_log == (out->reduced != NULL));
	return RV_OK;
}
