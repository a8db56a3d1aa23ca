/* checkpoint_list.c: the state files of a worker, and their use. */
#include "lab/worker_files/checkpoint.h"

#include "lab/worker_files/worker_rounds.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void add_row(json_t *rows, const char *name, json_t *round, uint64_t bytes, size_t n_params, const char *state) {
	double per_parameter = floor((double)bytes / (double)n_params * 1000 + 0.5) / 1000;
	json_array_append_new(rows, json_pack("{ss so sI sf ss}", "file", name, "round", round, "bytes", (json_int_t)bytes,
										  "bytes_per_parameter", per_parameter, "state", state));
}

/* Returns the text without the path, which the row has already. */
static const char *without_path(const char *text, const char *dir) {
	size_t n = strlen(dir);
	const char *colon = strncmp(text, dir, n) == 0 ? strstr(text + n, ": ") : NULL;
	return colon ? colon + 2 : text;
}

static void add_state_file(const struct worker_rounds *w, enum state_kind kind, uint64_t round, json_t *rows) {
	struct rv_errtext et = {0};
	struct state_file *f = NULL;
	struct checkpoint_start start;
	char name[64], state[RV_ERRTEXT_BYTES + 16];
	uint64_t bytes = 0;
	bool snapshot = kind == STATE_KIND_SNAPSHOT;
	enum rv_err e = statestore_open(&w->store, kind, round, &f, &et);
	if (e == RV_E_NOTFOUND)
		return;
	snprintf(name, sizeof name, snapshot ? "snapshot-%" PRIu64 ".rvs" : "log-%" PRIu64 ".rvl", round);
	if (f)
		bytes = state_file_bytes(f);
	state_file_free(f);
	if (e != RV_OK)
		snprintf(state, sizeof state, "damaged: %s", without_path(et.text, w->store.dir));
	else if (snapshot && checkpoint_start_before(w->index, UINT64_MAX, &start) && start.round == round)
		snprintf(state, sizeof state, "header ok, recovery starts here");
	else if (!snapshot && !checkpoint_proved(w->index, round))
		snprintf(state, sizeof state, "a vote, not proven to be committed");
	else
		snprintf(state, sizeof state, "header ok");
	add_row(rows, name, json_integer((json_int_t)round), bytes, w->store.cfg.n, state);
}

static void add_state_files(const struct worker_rounds *w, json_t *rows) {
	const struct checkpoint_list *snapshots = &w->index->snapshots, *logs = &w->index->logs;
	for (int b = 0, l = 0; b < snapshots->n || l < logs->n;) {
		bool snapshot = l == logs->n || (b < snapshots->n && snapshots->at[b].round <= logs->at[l].round);
		add_state_file(w, snapshot ? STATE_KIND_SNAPSHOT : STATE_KIND_LOG,
					   snapshot ? snapshots->at[b++].round : logs->at[l++].round, rows);
	}
}

/* Adds the replica, a snapshot that is being fetched, files that were set aside. */
static void add_others(const struct worker_rounds *w, json_t *rows) {
	static const struct {
		const char *end, *state;
	} sorts[] = {{"replica.rvp", "private: Adam state, data position"},
				 {".part", "a snapshot that is being fetched"},
				 {".damaged", "set aside: not used"}};
	DIR *d = opendir(w->store.dir);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		size_t n = strlen(e->d_name);
		for (size_t i = 0; i < sizeof sorts / sizeof sorts[0]; i++) {
			size_t k = strlen(sorts[i].end);
			if (n < k || strcmp(e->d_name + n - k, sorts[i].end) != 0 || fstatat(dirfd(d), e->d_name, &st, 0) != 0)
				continue;
			bool replica = i == 0;
			json_t *round = replica ? json_integer((json_int_t)w->index->replica_round) : json_null();
			add_row(rows, e->d_name, round, (uint64_t)st.st_size, w->store.cfg.n, sorts[i].state);
		}
	}
	closedir(d);
}

static json_t *recovery_of(const struct worker_rounds *w) {
	struct checkpoint_start start;
	char from[64] = "the initial weights";
	if (!checkpoint_start_before(w->index, UINT64_MAX, &start))
		return json_string("impossible: there is no snapshot; the state comes from peers");
	if (start.snapshot)
		snprintf(from, sizeof from, "snapshot-%" PRIu64 ".rvs", start.round);
	uint64_t reach = checkpoint_reach(w->index, &start);
	return json_sprintf("round %" PRIu64 ", from %s and %" PRIu64 " log entries", reach, from, reach - start.round);
}

enum rv_err checkpoint_list(const char *dir, json_t **facts, struct rv_errtext *et) {
	struct worker_rounds w;
	char rounds[512];
	*facts = NULL;
	RV_TRY(worker_rounds_open(dir, &w, et));
	json_t *rows = json_array();
	worker_rounds_print(&w, rounds, sizeof rounds);
	add_state_files(&w, rows);
	add_others(&w, rows);
	*facts = json_pack("{ss ss sI ss so so}", "kind", "checkpoints", "path", dir, "parameters",
					   (json_int_t)w.store.cfg.n, "rounds", rounds, "recovery", recovery_of(&w), "files", rows);
	worker_rounds_release(&w);
	return *facts ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory to list %s", dir);
}
