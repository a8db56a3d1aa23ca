/* sim_recovery.c: the fake directory under worker/recovery and worker/checkpoint_goes, which decide
 * what a disk proves when a process starts, and which files go. */
#include "sim.h"

#include "worker/state/checkpoint_goes.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* The header of a damaged file can be read or not, as the damage lies. */
static bool has_header(const struct sim_file *f) {
	return !f->damaged || (f->round + f->kind) % 2 == 0;
}

static void note_file(struct sim *s, const struct sim_file *f, struct checkpoint_index *x) {
	struct state_log_info log = {.attempt = 0};
	struct state_replica_info replica = {.round = 0};
	struct rv_hash chain;
	switch ((enum file_kind)f->kind) {
	case FILE_REPLICA:
		if (!f->damaged)
			files_replica_info(f->data, &replica);
		x->replica_round = replica.round;
		x->replica_waits = !f->damaged && files_replica_waits(s, f->data);
		break;
	case FILE_LOG:
		RV_ASSERT(files_log_bytes(s, f, &log) != NULL);
		checkpoint_index_add(x, STATE_KIND_LOG, f->round, log.attempt, has_header(f) ? &log.digest : NULL);
		break;
	case FILE_SNAPSHOT:
		chain = files_snapshot_chain(f->data);
		checkpoint_index_add(x, STATE_KIND_SNAPSHOT, f->round, 0, has_header(f) ? &chain : NULL);
		break;
	case FILE_TERM:
	case FILE_PART:
	case FILE_MEANS:
		break;
	}
}

static struct checkpoint_index *scan(struct sim *s, int host) {
	const struct sim_disk *d = &s->workers[host].disk;
	struct checkpoint_index *x = s->index;
	checkpoint_index_init(x, true, &s->run_hash);
	for (int i = 0; i < d->n_files; i++)
		if (d->files[i].data != NULL)
			note_file(s, &d->files[i], x);
	return x;
}

/* ---- at the start of a process ---- */

struct directory {
	struct sim *s;
	int host;
};

static const struct sim_file *find(const struct directory *d, enum file_kind kind, uint64_t round) {
	return disk_find(&d->s->workers[d->host].disk, kind, round);
}

static enum rv_err load_snapshot(void *ctx, uint64_t round, struct global_state *g, struct rv_hash *full_hash,
								 struct rv_errtext *et) {
	const struct directory *d = ctx;
	const struct sim_file *f = find(d, FILE_SNAPSHOT, round);
	if (f == NULL)
		return rv_fail(et, RV_E_CORRUPT, "snapshot %llu is damaged", (unsigned long long)round);
	files_read_snapshot(d->s, f->data, g);
	*full_hash = oracle_full_hash_of(d->s, g);
	return RV_OK;
}

static enum rv_err load_log(void *ctx, uint64_t round, struct state_log_info *info, struct blob **reduced,
							struct rv_errtext *et) {
	const struct directory *d = ctx;
	const struct sim_file *f = find(d, FILE_LOG, round);
	if (f == NULL)
		return rv_fail(et, RV_E_CORRUPT, "log %llu is damaged", (unsigned long long)round);
	const uint8_t *bytes = files_log_bytes(d->s, f, info);
	*reduced = blob_new(sim_payload(d->s, round));
	RV_ASSERT(*reduced != NULL);
	memcpy((*reduced)->data, bytes, (*reduced)->bytes);
	return RV_OK;
}

static void load_replica(void *ctx, struct recovered *out) {
	const struct directory *d = ctx;
	const struct sim_file *f = find(d, FILE_REPLICA, 0);
	out->has_replica = f != NULL;
	if (f == NULL)
		return;
	files_replica_info(f->data, &out->replica);
	out->replica_payload = byte_source_of(f->data);
}

static enum rv_err write_snapshot(void *ctx, const struct global_state *g, struct rv_errtext *et) {
	const struct directory *d = ctx;
	size_t n;
	(void)et;
	uint8_t *bytes = files_snapshot(d->s, g, &n);
	disk_write(d->s, d->host, FILE_SNAPSHOT, g->round, bytes, n, NULL, 0);
	free(bytes);
	return RV_OK;
}

static void set_aside(void *ctx, enum state_kind kind, uint64_t round, enum rv_err why, const struct rv_errtext *text) {
	const struct directory *d = ctx;
	(void)why;
	sim_say(d->s, d->host, "%s", text->text);
	disk_remove(&d->s->workers[d->host].disk, kind == STATE_KIND_SNAPSHOT ? FILE_SNAPSHOT : FILE_LOG, round);
}

static void not_written(void *ctx, enum rv_err why, const struct rv_errtext *text) {
	const struct directory *d = ctx;
	(void)why;
	sim_say(d->s, d->host, "%s", text->text);
}

void recovery_load(struct sim *s, int host, struct recovered *out) {
	struct sim_worker *w = &s->workers[host];
	struct directory d = {s, host};
	const struct recovery_files files = {.ctx = &d,
										 .load_snapshot = load_snapshot,
										 .load_log = load_log,
										 .load_replica = load_replica,
										 .write_snapshot = write_snapshot,
										 .set_aside = set_aside,
										 .not_written = not_written};
	const struct recovery_config cfg = {.theta0 = THETA0_OF_SEED,
										.schedule = {.snapshot_every = s->opt.snapshot_every, .rounds = s->opt.rounds}};
	disk_sync(&w->disk); /* what a process that was killed has renamed may not be durable yet, and is told to others */
	RV_ASSERT(recovery_run(&files, &cfg, scan(s, host), &w->global, out, NULL) == RV_OK);
}

/* ---- which files go ---- */

static enum statestore_file file_of(enum file_kind kind) {
	static const enum statestore_file files[] = {[FILE_SNAPSHOT] = STATE_FILE_SNAPSHOT,
												 [FILE_LOG] = STATE_FILE_LOG,
												 [FILE_REPLICA] = STATE_FILE_REPLICA,
												 [FILE_PART] = STATE_FILE_PART,
												 [FILE_MEANS] = STATE_FILE_MEANS};
	return files[kind];
}

typedef bool goes(const void *ctx, enum statestore_file file, uint64_t round);

static void remove_those(struct sim_disk *d, goes *which, const void *ctx) {
	for (int i = 0; i < d->n_files; i++) {
		const struct sim_file *f = &d->files[i];
		if (f->data != NULL && f->kind != FILE_TERM && which(ctx, file_of(f->kind), f->round))
			disk_remove(d, f->kind, f->round);
	}
}

struct retention {
	struct checkpoint_keep keep;
	const struct checkpoint_named *named;
};

static bool by_age(const void *ctx, enum statestore_file file, uint64_t round) {
	const struct retention *r = ctx;
	return checkpoint_goes_by_age(&r->keep, r->named, file, round);
}

void recovery_prune(struct sim *s, int host, const struct checkpoint_named *named) {
	const struct checkpoint_policy policy = {.keep_snapshots = s->opt.keep_snapshots, .keep_log = s->opt.keep_log};
	const struct retention r = {.keep = checkpoint_retention(scan(s, host), &policy, named), .named = named};
	remove_those(&s->workers[host].disk, by_age, &r);
}

static bool by_rollback(const void *ctx, enum statestore_file file, uint64_t round) {
	return checkpoint_goes_by_rollback(file, round, *(const uint64_t *)ctx);
}

/* What a rollback to `round` gives up. */
void recovery_rewind(struct sim *s, int host, uint64_t round) {
	struct sim_disk *disk = &s->workers[host].disk;
	remove_those(disk, by_rollback, &round);
	disk_sync(disk);
}

struct history {
	const struct checkpoint_index *x;
	struct checkpoint_committed committed;
	uint64_t from;
};

static bool by_history(const void *ctx, enum statestore_file file, uint64_t round) {
	const struct history *h = ctx;
	return checkpoint_goes_by_history(h->x, &h->committed, h->from, file, round);
}

void recovery_forget_from(struct sim *s, int host, const struct store_job *j) {
	struct sim_disk *disk = &s->workers[host].disk;
	const struct history h = {.x = scan(s, host),
							  .committed = {.first = j->committed_from, .n = j->n_committed, .digests = j->committed},
							  .from = j->round};
	remove_those(disk, by_history, &h);
	disk_sync(disk);
}

bool recovery_find_part(const struct sim_disk *d, uint64_t *round) {
	bool found = false;
	for (int i = 0; i < d->n_files; i++) {
		const struct sim_file *f = &d->files[i];
		if (f->kind != FILE_PART || f->data == NULL || (found && f->round < *round))
			continue;
		*round = f->round;
		found = true;
	}
	return found;
}
