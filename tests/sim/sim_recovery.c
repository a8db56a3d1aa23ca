/* sim_recovery.c: what a disk proves when a process starts, and which files go: worker/checkpoint_index decides, as it
 * does for the real state store (worker/statestore_recover.c, statestore_prune.c). */
#include "sim.h"

#include "worker/document_files.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* The header of a damaged file can be read or not, as the damage lies. */
static bool has_header(const struct sim_file *f) {
	return !f->damaged || (f->round + f->kind) % 2 == 0;
}

static void note_file(struct sim *s, const struct sim_file *f, struct checkpoint_index *x) {
	uint32_t attempt = 0;
	struct rv_hash hash = {0};
	if (f->kind == FILE_EPOCH)
		return;
	if (f->kind == FILE_REPLICA) {
		x->replica_round = f->damaged ? 0 : trainer_replica_round(f->data);
		x->replica_waits = !f->damaged && trainer_replica_waits(s, f->data);
		return;
	}
	if (f->kind == FILE_LOG)
		RV_ASSERT(trainer_log_bytes(s, f, &attempt, &hash) != NULL);
	else
		hash = trainer_base_chain(f->data);
	checkpoint_index_add(x, f->kind == FILE_BASE ? STATE_KIND_BASE : STATE_KIND_LOG, f->round, attempt,
						 has_header(f) ? &hash : NULL);
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

static struct checkpoint_start load_newest_base(struct sim *s, int host, struct checkpoint_index *x) {
	struct sim_worker *w = &s->workers[host];
	struct checkpoint_start start;
	RV_ASSERT(checkpoint_start_before(x, UINT64_MAX, &start));
	while (start.base) {
		const struct sim_file *f = disk_find(&w->disk, FILE_BASE, start.round);
		if (f != NULL) {
			trainer_read_base(s, f->data, &w->global);
			trainer_note_full_hash(s, w);
			break;
		}
		checkpoint_index_damaged(x, STATE_KIND_BASE, start.round);
		RV_ASSERT(checkpoint_start_before(x, UINT64_MAX, &start));
	}
	return start;
}

/* An entry that is whole, into `log`, whose `bytes` are filled. */
static bool load_log(struct sim *s, int host, struct checkpoint_index *x, uint64_t round, struct sim_log *log) {
	const struct sim_file *f = disk_find(&s->workers[host].disk, FILE_LOG, round);
	if (f == NULL) {
		checkpoint_index_damaged(x, STATE_KIND_LOG, round);
		return false;
	}
	const uint8_t *bytes = trainer_log_bytes(s, f, &log->attempt, &log->digest);
	memcpy(log->bytes, bytes, sim_payload(s, round));
	log->held = true;
	log->round = round;
	return true;
}

/* As statestore_recover does: its hash is about to be told, and joiners will ask for the file. */
static void keep_base(struct sim *s, int host, const struct checkpoint_index *x) {
	uint64_t round = s->workers[host].global.round;
	const struct checkpoint_file *known = checkpoint_index_find(x, STATE_KIND_BASE, round);
	if (sim_is_checked(s, round) && (known == NULL || known->damaged))
		trainer_write_base(s, host, NULL);
}

void recovery_load(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	disk_sync(&w->disk); /* what a process that was killed has renamed may not be durable yet, and is told to others */
	struct checkpoint_index *x = scan(s, host);
	struct checkpoint_start start = load_newest_base(s, host, x);
	uint64_t goal = checkpoint_goal(x, &start);
	while (w->global.round < goal) {
		struct sim_log log = {.bytes = w->log.bytes};
		if (!load_log(s, host, x, w->global.round, &log))
			return; /* peers have it */
		RV_ASSERT(global_apply(&w->global, log.bytes, &log.digest, NULL) == RV_OK);
		if (sim_is_checked(s, w->global.round))
			trainer_note_full_hash(s, w);
		keep_base(s, host, x);
	}
	if (checkpoint_is_at_hand(x, w->global.round))
		(void)load_log(s, host, x, w->global.round, &w->log);
}

/* ---- retention ---- */

void recovery_prune(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct document *d = round_document(w->core);
	const struct checkpoint_policy policy = {.keep_bases = s->opt.keep_bases, .keep_log = s->opt.keep_log};
	const struct checkpoint_named named = document_named_files(d);
	const struct checkpoint_index *x = scan(s, host);
	struct checkpoint_keep keep = checkpoint_retention(x, &policy, &named);
	for (int i = 0; i < x->bases.n; i++)
		if (!checkpoint_keeps_base(&keep, &named, x->bases.at[i].round))
			disk_remove(&w->disk, FILE_BASE, x->bases.at[i].round);
	for (int i = 0; i < x->logs.n && x->logs.at[i].round < keep.logs_from; i++)
		disk_remove(&w->disk, FILE_LOG, x->logs.at[i].round);
}

/* What a rollback to `round` gives up. */
void recovery_rewind(struct sim *s, int host, uint64_t round) {
	struct sim_disk *d = &s->workers[host].disk;
	const struct checkpoint_index *x = scan(s, host);
	for (int i = 0; i < x->bases.n; i++)
		if (x->bases.at[i].round > round)
			disk_remove(d, FILE_BASE, x->bases.at[i].round);
	for (int i = 0; i < x->logs.n; i++)
		if (x->logs.at[i].round >= round)
			disk_remove(d, FILE_LOG, x->logs.at[i].round);
}

/* The document says that this entry was committed. */
static bool is_committed(const struct document *d, const struct checkpoint_file *log) {
	const struct rv_hash *digest = document_digest(d, log->round);
	return log->has_hash && digest != NULL && rv_hash_equal(&log->hash, digest);
}

/* Before a base of `round` is installed: other later files than the document's may be of another history; so may be a
 * vote that was never committed. */
void recovery_forget_from(struct sim *s, int host, uint64_t round) {
	struct sim_disk *d = &s->workers[host].disk;
	const struct document *doc = round_document(s->workers[host].core);
	const struct checkpoint_index *x = scan(s, host);
	for (int i = 0; i < x->bases.n; i++)
		if (x->bases.at[i].round > round)
			disk_remove(d, FILE_BASE, x->bases.at[i].round);
	for (int i = 0; i < x->logs.n; i++)
		if (!is_committed(doc, &x->logs.at[i]) &&
			(x->logs.at[i].round >= round || !checkpoint_proved(x, x->logs.at[i].round)))
			disk_remove(d, FILE_LOG, x->logs.at[i].round);
	disk_remove(d, FILE_REPLICA, 0);
	disk_sync(d);
}
