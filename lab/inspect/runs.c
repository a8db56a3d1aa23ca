/* runs.c: files of runs: a worker's directory, its state files, checkpoints of the lab, metrics. */
#include "lab/inspect/inspect.h"
#include "lab/worker_files/facts.h"

#include "base/bytes.h"
#include "lab/run/checkpoint_header.h"
#include "lab/run/run_record.h"
#include "lab/worker_files/worker_rounds.h"
#include "train/metrics.h"
#include "worker/join/membership.h"
#include "worker/state/state_format.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a worker's directory ---- */

static json_t *snapshots_of(const struct worker_rounds *w) {
	json_t *snapshots = json_array();
	for (int i = 0; i < w->index->snapshots.n; i++)
		json_array_append_new(snapshots, json_integer((json_int_t)w->index->snapshots.at[i].round));
	return snapshots;
}

enum rv_err inspect_worker(const char *path, json_t *facts, struct rv_errtext *et) {
	struct worker_rounds w;
	struct membership member;
	char rounds[512];
	RV_TRY(worker_rounds_open(path, &w, et));
	worker_rounds_print(&w, rounds, sizeof rounds);
	if (membership_read_member(path, &member, NULL) == RV_OK)
		facts_put(facts, "{sI ss}", "member", (json_int_t)member.member, "name",
				  member.name[0] ? member.name : "(none)");
	inspect_put_model(facts, &w.run);
	facts_put(facts, "{sI ss so si}", "rounds_of_the_run", (json_int_t)w.run.rounds, "rounds_to_export", rounds,
			  "snapshots", snapshots_of(&w), "log_entries", w.index->logs.n);
	facts_put_hash(facts, "run_hash", &w.store.cfg.run_hash);
	worker_rounds_release(&w);
	return RV_OK;
}

/* ---- files of state: their headers ---- */

enum { STATE_MAGIC_BYTES = 8, STATE_HEAD_BYTES = 64 };

static void put_state(struct rv_reader *r, const char *sort, json_t *facts) {
	struct rv_hash run;
	json_object_set_new(facts, "sort", json_string(sort));
	facts_put_version(facts, rv_read_u32(r), STATE_VERSION);
	(void)rv_read_u32(r);
	rv_read_copy(r, run.b, RV_HASH_BYTES);
	json_object_set_new(facts, "round", json_integer((json_int_t)rv_read_u64(r)));
	facts_put_hash(facts, "run_hash", &run);
}

static enum rv_err put_checkpoint(const char *path, json_t *facts, struct rv_errtext *et) {
	struct checkpoint_header h;
	char method[CHECKPOINT_METHOD_BYTES + 1] = "";
	RV_TRY(checkpoint_header_read(path, &h, et));
	memcpy(method, h.method, CHECKPOINT_METHOD_BYTES);
	facts_put(facts, "{ss si ss sI sI sI sI}", "sort", "checkpoint of the lab", "version", CHECKPOINT_VERSION, "method",
			  method, "workers", (json_int_t)h.workers, "threads", (json_int_t)h.threads, "round",
			  (json_int_t)h.rounds_done, "tokens", (json_int_t)h.tokens_done);
	facts_put_hash(facts, "run_hash", &h.run_hash);
	return RV_OK;
}

enum rv_err inspect_state_file(const char *path, json_t *facts, struct rv_errtext *et) {
	uint8_t head[STATE_HEAD_BYTES];
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return rv_fail_errno(et, errno, "%s: cannot open for reading", path);
	ssize_t n = pread(fd, head, sizeof head, 0);
	(void)close(fd);
	struct rv_reader r = rv_reader_of(head, n > 0 ? (size_t)n : 0);
	const uint8_t *magic = rv_read_span(&r, STATE_MAGIC_BYTES);
	if (!magic)
		return rv_fail(et, RV_E_CORRUPT, "%s: cut short", path);
	json_object_set_new(facts, "bytes", json_integer(st.st_size));
	if (memcmp(magic, "rivuletL", STATE_MAGIC_BYTES) == 0)
		return put_checkpoint(path, facts, et);
	put_state(&r, magic[2] == 'S' ? "snapshot" : magic[2] == 'L' ? "log entry" : "replica", facts);
	return rv_reader_ok(&r) ? RV_OK : rv_fail(et, RV_E_CORRUPT, "%s: cut short", path);
}

/* ---- metrics ---- */

/* Returns NULL, which is left out, for an empty text: it says nothing. */
static const char *known(const char *text) {
	return text[0] ? text : NULL;
}

static json_t *number_or_null(double v) {
	return isfinite(v) ? json_real(v) : json_null();
}

enum rv_err inspect_metrics(const char *path, json_t *facts, struct rv_errtext *et) {
	char file[PATH_MAX];
	struct stat st;
	bool directory = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	if (snprintf(file, sizeof file, "%s%s", path, directory ? "/" METRICS_FILE : "") >= (int)sizeof file)
		return rv_fail(et, RV_E_RANGE, "%.100s...: longer than a path may be", path);
	struct run_record r;
	RV_TRY(run_record_read(file, &r, et));
	struct record_totals t = run_record_totals(&r);
	facts_put(facts, "{ss ss* ss* ss* ss* ss*}", "name", r.name, "role", known(r.role), "program", known(r.program),
			  "data", known(r.data), "method", known(r.method), "codec", known(r.codec));
	facts_put(facts, "{sI sI sI sI sI so so sb}", "workers", (json_int_t)r.workers, "parameters",
			  (json_int_t)r.n_params, "rounds", (json_int_t)t.rounds, "steps", (json_int_t)t.steps, "tokens",
			  (json_int_t)t.tokens, "bytes_sent", number_or_null(t.bytes_sent), "heldout_loss", number_or_null(t.loss),
			  "ended", (int)r.ended);
	if (r.diverged_round > 0)
		json_object_set_new(facts, "diverged_in_round", json_integer((json_int_t)r.diverged_round));
	json_object_set_new(facts, "lines_not_json", json_integer(r.skipped_lines));
	run_record_release(&r);
	return RV_OK;
}
