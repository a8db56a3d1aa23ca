/* checkpoint_verify.c: reads every state file of a worker and replays the states that they make. */
#include "lab/worker_files/checkpoint.h"

#include "lab/worker_files/facts.h"
#include "lab/worker_files/worker_rounds.h"
#include "train/replica.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LOOKS = 5 };

struct verification {
	struct worker_rounds *w;
	int looks; /* how often the directory was listed again because files were gone */
	json_t *damage;
	char first[RV_ERRTEXT_BYTES]; /* text of the first damage */
	uint64_t files, bytes, rounds, snapshots_compared;
};

__attribute__((format(printf, 2, 3))) static void note_damage(struct verification *v, const char *format, ...) {
	char text[RV_ERRTEXT_BYTES];
	va_list values;
	va_start(values, format);
	vsnprintf(text, sizeof text, format, values);
	va_end(values);
	json_array_append_new(v->damage, json_string(text));
	if (!v->first[0])
		memcpy(v->first, text, sizeof text);
}

/* ---- files ---- */

static void verify_file(struct verification *v, enum state_kind kind, uint64_t round) {
	struct rv_errtext et = {0};
	struct state_file *f = NULL;
	enum rv_err e = statestore_open(&v->w->store, kind, round, &f, &et);
	if (e == RV_E_NOTFOUND)
		return; /* removed by its worker meanwhile */
	if (e == RV_OK) {
		v->bytes += state_file_bytes(f);
		e = state_file_verify(f, &et);
		if (e != RV_OK)
			(void)rv_fail_context(&et, e, "%s/%s-%" PRIu64 "%s", v->w->store.dir,
								  kind == STATE_KIND_SNAPSHOT ? "snapshot" : "log", round,
								  kind == STATE_KIND_SNAPSHOT ? ".rvs" : ".rvl");
	}
	state_file_free(f);
	v->files++;
	if (e == RV_OK)
		return;
	note_damage(v, "%s", et.text);
	checkpoint_index_damaged(v->w->index, kind, round);
}

static void verify_files(struct verification *v) {
	struct rv_errtext et = {0};
	struct replica_file *replica = NULL;
	for (int i = 0; i < v->w->index->snapshots.n; i++)
		verify_file(v, STATE_KIND_SNAPSHOT, v->w->index->snapshots.at[i].round);
	for (int i = 0; i < v->w->index->logs.n; i++)
		verify_file(v, STATE_KIND_LOG, v->w->index->logs.at[i].round);
	enum rv_err e = statestore_open_replica(&v->w->store, &replica, &et);
	if (e == RV_OK) {
		const struct byte_source payload = replica_file_payload(replica);
		e = replica_check(&payload, replica_file_info(replica)->payload_bytes, &et);
	}
	replica_file_free(replica);
	v->files += e != RV_E_NOTFOUND;
	if (e != RV_OK && e != RV_E_NOTFOUND)
		note_damage(v, "%s", et.text);
}

/* ---- states ---- */

/* Compares a replayed state with the snapshot of the same round. */
static void compare_snapshot(struct verification *v, const struct global_state *g) {
	const struct checkpoint_file *snapshot = checkpoint_index_find(v->w->index, STATE_KIND_SNAPSHOT, g->round);
	struct state_file *f;
	if (!snapshot || snapshot->damaged ||
		statestore_open(&v->w->store, STATE_KIND_SNAPSHOT, g->round, &f, NULL) != RV_OK)
		return;
	struct rv_hash full = global_full_hash(g);
	const struct state_id *id = state_file_id(f);
	v->snapshots_compared++;
	if (!rv_hash_equal(&id->chain, &g->chain) || !rv_hash_equal(&id->expect, &full))
		note_damage(v,
					"%s/snapshot-%" PRIu64 ".rvs: whole, but not the state that the log leads to: of another history",
					v->w->store.dir, g->round);
	state_file_free(f);
}

/* Notes a fault, unless the worker has removed the file meanwhile: then lists the rest again. */
static void note_fault(struct verification *v, enum rv_err e, const struct rv_errtext *why) {
	struct rv_errtext et = {0};
	if (e != RV_E_NOTFOUND)
		note_damage(v, "%s", why->text);
	else if (v->looks++ < LOOKS && worker_rounds_look_again(v->w, &et) != RV_OK)
		note_damage(v, "%s", et.text);
}

/* Replays from one start as far as its log goes; returns the round reached. */
static uint64_t replay_from(struct verification *v, const struct checkpoint_start *start) {
	struct global_state g;
	struct rv_errtext et = {0};
	uint64_t reach = checkpoint_reach(v->w->index, start);
	enum rv_err e = worker_rounds_begin(v->w, start, &g, &et);
	if (e != RV_OK) {
		note_fault(v, e, &et);
		return start->round;
	}
	v->rounds++;
	while (g.round < reach && (e = worker_rounds_apply(v->w, &g, &et)) == RV_OK) {
		v->rounds++;
		compare_snapshot(v, &g);
	}
	uint64_t reached = g.round;
	global_release(&g);
	if (e != RV_OK)
		note_fault(v, e, &et);
	else if (checkpoint_proved(v->w->index, reach))
		note_damage(v, "%s: the log from round %" PRIu64 " on does not lead to the next snapshot: of another history",
					v->w->store.dir, reach);
	return reached;
}

static void replay_all(struct verification *v) {
	struct checkpoint_start start;
	for (bool more = worker_rounds_first_start(v->w, &start); more;) {
		uint64_t reached = replay_from(v, &start);
		more = worker_rounds_next_start(v->w, reached, &start);
	}
}

static void on_damage(void *v, enum rv_err why, const char *text) {
	(void)why;
	note_damage(v, "%s", text);
}

/* Replays only `round`. Notes damage on the way to it even if an earlier snapshot makes it. */
static void replay_one(struct verification *v, int64_t round, json_t *facts) {
	struct global_state g;
	struct rv_errtext et = {0};
	v->w->store.notice = on_damage;
	v->w->store.notice_ctx = v;
	if (worker_rounds_replay(v->w, round, &g, &et) != RV_OK) {
		if (json_array_size(v->damage) == 0)
			note_damage(v, "%s", et.text);
		snprintf(v->first, sizeof v->first, "%s", et.text); /* the text names all of the damage */
		return;
	}
	v->rounds++;
	struct rv_hash full = global_full_hash(&g);
	compare_snapshot(v, &g);
	facts_put_hash(facts, "chain", &g.chain);
	facts_put_hash(facts, "state", &full);
	global_release(&g);
}

enum rv_err checkpoint_verify_listed(struct worker_rounds *w, int64_t round, json_t **facts, struct rv_errtext *et) {
	struct verification v = {.w = w, .damage = json_array()};
	char rounds[512];
	*facts = json_pack("{ss ss}", "kind", "checkpoints", "path", w->store.dir);
	if (round < 0) {
		verify_files(&v);
		replay_all(&v);
	} else {
		replay_one(&v, round, *facts);
	}
	worker_rounds_print(w, rounds, sizeof rounds);
	size_t damaged = json_array_size(v.damage);
	facts_put(*facts, "{ss sI sI sI sI so}", "rounds", rounds, "files_read", (json_int_t)v.files, "bytes_read",
			  (json_int_t)v.bytes, "rounds_replayed", (json_int_t)v.rounds, "snapshots_compared",
			  (json_int_t)v.snapshots_compared, "damage", v.damage);
	if (damaged == 0)
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "%s: %zu fault%s found: %s", w->store.dir, damaged, damaged == 1 ? "" : "s",
				   v.first);
}

enum rv_err checkpoint_verify(const char *dir, int64_t round, json_t **facts, struct rv_errtext *et) {
	struct worker_rounds w;
	*facts = NULL;
	RV_TRY(worker_rounds_open(dir, &w, et));
	enum rv_err e = checkpoint_verify_listed(&w, round, facts, et);
	worker_rounds_release(&w);
	return e;
}
