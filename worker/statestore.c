/* statestore.c: the files in --dir. */
#include "worker/statestore.h"

#include "base/assert.h"
#include "base/file.h"
#include "worker/train/weights.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALPHANUMERIC "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
enum { FILE_MODE = 0644 };

void statestore_path(const struct statestore *s, enum statestore_file kind, uint64_t round,
					 char out[STATESTORE_PATH_BYTES]) {
	if (kind == STATE_FILE_REPLICA)
		snprintf(out, STATESTORE_PATH_BYTES, "%s/replica.rvp", s->dir);
	else
		snprintf(out, STATESTORE_PATH_BYTES, "%s/%s-%" PRIu64 ".%s", s->dir, kind == STATE_FILE_BASE ? "base" : "log",
				 round, kind == STATE_FILE_BASE ? "rvs" : "rvl");
}

bool statestore_is_checked(const struct statestore *s, uint64_t round) {
	return round > 0 && ((s->base_every > 0 && round % s->base_every == 0) || round == s->rounds);
}

/* ---- writing --------------------------------------------------------------------------------------------------------
 */

struct span {
	const void *data;
	size_t bytes;
};

static enum rv_err write_spans(const char *path, const struct span *spans, int n, struct rv_errtext *et) {
	struct rv_file_writer w;
	RV_TRY(rv_file_writer_begin(&w, path, FILE_MODE, et));
	for (int i = 0; i < n; i++) {
		enum rv_err e = rv_file_writer_write(&w, spans[i].data, spans[i].bytes, et);
		if (e != RV_OK) {
			rv_file_writer_abandon(&w);
			return e;
		}
	}
	return rv_file_writer_commit(&w, et);
}

enum rv_err statestore_write_base(const struct statestore *s, const struct global_state *g,
								  const struct rv_hash *full_hash, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	uint8_t header[STATE_BASE_HEADER_BYTES];
	struct span spans[2 + GLOBAL_MAX_STATES] = {{header, sizeof header}, {g->theta, g->cfg.n * sizeof(float)}};
	int n = 2;
	state_base_header(g, full_hash, header);
	for (int k = 0; k < g->cfg.optimizer->n_states; k++)
		spans[n++] = (struct span){g->state[k], g->cfg.n * sizeof(float)};
	statestore_path(s, STATE_FILE_BASE, g->round, path);
	return write_spans(path, spans, n, et);
}

enum rv_err statestore_write_replica(const struct statestore *s, const struct state_replica_info *info,
									 const uint8_t *payload, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	uint8_t header[STATE_REPLICA_HEADER_BYTES];
	state_replica_header(&s->cfg, info, header);
	statestore_path(s, STATE_FILE_REPLICA, 0, path);
	struct span spans[] = {{header, sizeof header}, {payload, info->payload_bytes}};
	return write_spans(path, spans, 2, et);
}

enum rv_err statestore_write_file(const struct statestore *s, enum statestore_file kind, uint64_t round,
								  const struct blob *file, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, kind, round, path);
	return write_spans(path, &(struct span){file->data, file->bytes}, 1, et);
}

/* ---- reading --------------------------------------------------------------------------------------------------------
 */

enum rv_err statestore_read(const struct statestore *s, enum statestore_file kind, uint64_t round, size_t max_bytes,
							struct blob **out, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	uint8_t *bytes;
	size_t n;
	statestore_path(s, kind, round, path);
	RV_TRY(rv_file_read(path, max_bytes, &bytes, &n, et));
	struct blob *b = blob_new(n);
	if (b)
		memcpy(b->data, bytes, n);
	free(bytes);
	if (!b)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory for its %zu bytes", path, n);
	*out = b;
	return RV_OK;
}

static bool parse_name(const char *name, const char *format, uint64_t *round) {
	int end = 0;
	return sscanf(name, format, round, &end) == 1 && end > 0 && name[end] == '\0';
}

static int ascending(const void *a, const void *b) {
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

enum rv_err statestore_list(const struct statestore *s, struct statestore_listing *l, struct rv_errtext *et) {
	l->n_bases = l->n_logs = 0;
	DIR *d = opendir(s->dir);
	if (!d)
		return rv_fail_errno(et, errno, "%s", s->dir);
	for (struct dirent *e; (e = readdir(d));) {
		uint64_t round;
		if (l->n_bases < STATESTORE_MAX_LISTED && parse_name(e->d_name, "base-%" SCNu64 ".rvs%n", &round))
			l->bases[l->n_bases++] = round;
		else if (l->n_logs < STATESTORE_MAX_LISTED && parse_name(e->d_name, "log-%" SCNu64 ".rvl%n", &round))
			l->logs[l->n_logs++] = round;
	}
	closedir(d);
	qsort(l->bases, (size_t)l->n_bases, sizeof l->bases[0], ascending);
	qsort(l->logs, (size_t)l->n_logs, sizeof l->logs[0], ascending);
	return RV_OK;
}

/* ---- leftovers ------------------------------------------------------------------------------------------------------
 */

/* NAME of a file that this program writes in the directory. */
static bool is_our_file(const char *name) {
	static const char *const names[] = {
		"replica.rvp", WEIGHTS_FILE,  "identity.key",           "run.link",       "member.conf",
		"run.conf",    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"};
	uint64_t round;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return parse_name(name, "base-%" SCNu64 ".rvs%n", &round) || parse_name(name, "log-%" SCNu64 ".rvl%n", &round);
}

/* NAME.tmp-?????? of such a file: what rv_file_writer makes. */
static bool is_leftover(const char *name) {
	static const char middle[] = ".tmp-";
	enum { MIDDLE = sizeof middle - 1, RANDOM = 6, NAME_MAX_BYTES = 64 };
	char file[NAME_MAX_BYTES];
	size_t n = strlen(name);
	if (n <= MIDDLE + RANDOM || n >= sizeof file + MIDDLE + RANDOM)
		return false;
	const char *random = name + n - RANDOM;
	if (memcmp(random - MIDDLE, middle, MIDDLE) != 0 || strspn(random, ALPHANUMERIC) != RANDOM)
		return false;
	snprintf(file, sizeof file, "%.*s", (int)(n - MIDDLE - RANDOM), name);
	return is_our_file(file);
}

/* A process that was killed while it wrote leaves its temporary file. The directory is locked: nobody writes there now.
 */
static void remove_leftovers(const struct statestore *s) {
	DIR *d = opendir(s->dir);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));)
		if (is_leftover(e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
}

/* ---- recovery -------------------------------------------------------------------------------------------------------
 */

static void notice(const struct statestore *s, enum statestore_file kind, uint64_t round, enum rv_err why,
				   const struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES], text[RV_ERRTEXT_BYTES + STATESTORE_PATH_BYTES + 32];
	statestore_path(s, kind, round, path);
	snprintf(text, sizeof text, "%s cannot be used: %s", path, et->text);
	if (s->notice)
		s->notice(s->notice_ctx, why, text);
}

/* The newest base that is whole, into *g; false: there is none, and *g stays as it is. */
static bool load_newest_base(const struct statestore *s, const struct statestore_listing *l, struct global_state *g,
							 struct statestore_found *out) {
	for (int i = l->n_bases - 1; i >= 0; i--) {
		struct rv_errtext et = {0};
		struct blob *file = NULL;
		enum rv_err e = statestore_read(s, STATE_FILE_BASE, l->bases[i], state_base_bytes(&s->cfg), &file, &et);
		if (e == RV_OK)
			e = state_base_load(&s->cfg, file->data, file->bytes, g, &out->full_hash, &et);
		blob_unref(file);
		if (e == RV_OK) {
			out->full_round = g->round;
			return true;
		}
		notice(s, STATE_FILE_BASE, l->bases[i], e, &et);
	}
	return false;
}

/* Without a base *g is theta0, or nothing. */
static enum rv_err find_start(const struct statestore *s, const struct statestore_listing *l, struct global_state *g,
							  struct statestore_found *out, struct rv_errtext *et) {
	if (load_newest_base(s, l, g, out))
		return RV_OK;
	out->lacks_state = s->theta0 == THETA0_IS_LACKED;
	if (s->theta0 != THETA0_GIVEN)
		return RV_OK;
	struct rv_hash full_hash = global_full_hash(g);
	return statestore_write_base(s, g, &full_hash, et);
}

enum rv_err statestore_read_log(const struct statestore *s, uint64_t round, struct blob **file,
								struct state_log_info *info, const uint8_t **payload, struct rv_errtext *et) {
	*file = NULL;
	enum rv_err e = statestore_read(s, STATE_FILE_LOG, round, state_log_bytes(&s->cfg), file, et);
	if (e == RV_OK)
		e = state_log_load(&s->cfg, (*file)->data, (*file)->bytes, info, payload, et);
	if (e == RV_OK && info->round != round)
		e = rv_fail(et, RV_E_CORRUPT, "it holds round %" PRIu64, info->round);
	if (e == RV_OK)
		return RV_OK;
	blob_unref(*file);
	*file = NULL;
	return e;
}

/* The same; false when there is none that can be used. */
static bool load_log(const struct statestore *s, uint64_t round, struct blob **file, struct state_log_info *info,
					 const uint8_t **payload) {
	struct rv_errtext et = {0};
	enum rv_err e = statestore_read_log(s, round, file, info, payload, &et);
	if (e != RV_OK && e != RV_E_NOTFOUND)
		notice(s, STATE_FILE_LOG, round, e, &et);
	return e == RV_OK;
}

static void load_replica(const struct statestore *s, struct statestore_found *out) {
	struct rv_errtext et = {0};
	const uint8_t *payload;
	enum rv_err e = statestore_read(s, STATE_FILE_REPLICA, 0, SIZE_MAX / 2, &out->replica_file, &et);
	if (e == RV_OK)
		e = state_replica_load(&s->cfg, out->replica_file->data, out->replica_file->bytes, &out->replica, &payload,
							   &et);
	out->has_replica = e == RV_OK;
	if (e == RV_OK)
		return;
	if (e != RV_E_NOTFOUND)
		notice(s, STATE_FILE_REPLICA, 0, e, &et);
	blob_unref(out->replica_file);
	out->replica_file = NULL;
}

static bool has_log(const struct statestore_listing *l, uint64_t round) {
	return bsearch(&round, l->logs, (size_t)l->n_logs, sizeof round, ascending) != NULL;
}

/* Fetched on the word of a signed document, or a round after it was begun with its result: so it was committed. */
static bool proved_committed(const struct statestore_listing *l, const struct statestore_found *found,
							 const struct state_log_info *info) {
	return info->attempt == 0 || has_log(l, info->round + 1) ||
		   (found->has_replica && found->replica.round > info->round);
}

static enum rv_err replay(const struct statestore *s, const struct statestore_listing *l, struct global_state *g,
						  struct statestore_found *out, struct rv_errtext *et) {
	while (has_log(l, g->round)) {
		const uint8_t *payload;
		struct blob *file;
		struct state_log_info info;
		uint64_t round = g->round;
		if (!load_log(s, round, &file, &info, &payload))
			return RV_OK; /* peers have it */
		if (!proved_committed(l, out, &info)) {
			out->has_log = true;
			out->log = info;
			out->log_file = file;
			return RV_OK;
		}
		enum rv_err e = global_apply(g, payload, &info.digest, et);
		blob_unref(file);
		if (e != RV_OK)
			return rv_fail_context(et, e, "%s/log-%" PRIu64 ".rvl", s->dir, round);
		if (statestore_is_checked(s, g->round)) {
			out->full_round = g->round;
			out->full_hash = global_full_hash(g);
		}
	}
	return RV_OK;
}

enum rv_err statestore_recover(const struct statestore *s, struct global_state *g, struct statestore_found *out,
							   struct rv_errtext *et) {
	*out = (struct statestore_found){0};
	struct statestore_listing *l = malloc(sizeof *l);
	if (!l)
		return rv_fail(et, RV_E_NOMEM, "no memory to list %s", s->dir);
	remove_leftovers(s);
	enum rv_err e = statestore_list(s, l, et);
	if (e == RV_OK)
		e = find_start(s, l, g, out, et);
	if (e == RV_OK && !out->lacks_state) {
		load_replica(s, out);
		e = replay(s, l, g, out, et);
	}
	free(l);
	return e;
}

/* ---- retention ------------------------------------------------------------------------------------------------------
 */

static void remove_file(const struct statestore *s, enum statestore_file kind, uint64_t round) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, kind, round, path);
	(void)unlink(path);
}

void statestore_prune(const struct statestore *s, uint64_t vouched_round) {
	struct statestore_listing *l = malloc(sizeof *l);
	if (l && statestore_list(s, l, NULL) == RV_OK) {
		uint64_t keep_from = 0; /* the base before the newest that is not after vouched_round */
		for (int i = 1; i < l->n_bases && l->bases[i] <= vouched_round; i++)
			keep_from = l->bases[i - 1];
		for (int i = 0; i < l->n_bases; i++)
			if (l->bases[i] < keep_from)
				remove_file(s, STATE_FILE_BASE, l->bases[i]);
		for (int i = 0; i < l->n_logs; i++)
			if (l->logs[i] < keep_from)
				remove_file(s, STATE_FILE_LOG, l->logs[i]);
	}
	free(l);
}

void statestore_forget_from(const struct statestore *s, uint64_t round) {
	struct statestore_listing *l = malloc(sizeof *l);
	if (l && statestore_list(s, l, NULL) == RV_OK) {
		for (int i = 0; i < l->n_bases; i++)
			if (l->bases[i] > round)
				remove_file(s, STATE_FILE_BASE, l->bases[i]);
		for (int i = 0; i < l->n_logs; i++)
			if (l->logs[i] >= round)
				remove_file(s, STATE_FILE_LOG, l->logs[i]);
		remove_file(s, STATE_FILE_REPLICA, 0);
	}
	free(l);
}
