/* statestore_scan.c: lists the files in --dir and sets aside unusable ones. */
#include "worker/state/statestore_internal.h"

#include "train/files/weights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALPHANUMERIC "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DAMAGED      ".damaged"

struct checkpoint_index *statestore_new_index(const struct statestore *s, struct rv_errtext *et) {
	struct checkpoint_index *x = malloc(sizeof *x);
	if (!x)
		(void)rv_fail(et, RV_E_NOMEM, "no memory to list %s", s->dir);
	return x;
}

/* ---- headers ---- */

static enum rv_err read_header(const struct statestore *s, enum statestore_file kind, uint64_t round,
							   uint8_t out[static STATE_HEADER_BYTES], struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, kind, round, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return rv_fail_errno(et, errno, "cannot open for reading");
	ssize_t n = pread(fd, out, STATE_HEADER_BYTES, 0);
	enum rv_err e = n < 0 ? rv_fail_errno(et, errno, "cannot read") : RV_OK;
	if (n >= 0 && n < STATE_HEADER_BYTES)
		e = rv_fail(et, RV_E_CORRUPT, "%zd bytes: cut short", n);
	(void)close(fd);
	return e;
}

static enum rv_err load_snapshot_header(const struct statestore *s, uint64_t round, struct rv_hash *chain,
										struct rv_errtext *et) {
	uint8_t header[STATE_HEADER_BYTES];
	struct state_snapshot_info info;
	RV_TRY(read_header(s, STATE_FILE_SNAPSHOT, round, header, et));
	RV_TRY(state_snapshot_header_load(&s->cfg, header, &info, et));
	*chain = info.chain;
	return info.round == round ? RV_OK : rv_fail(et, RV_E_CORRUPT, "it holds round %" PRIu64, info.round);
}

enum rv_err statestore_log_header(const struct statestore *s, uint64_t round, struct state_log_info *info,
								  struct rv_errtext *et) {
	uint8_t header[STATE_HEADER_BYTES];
	struct rv_hash index_hash;
	RV_TRY(read_header(s, STATE_FILE_LOG, round, header, et));
	RV_TRY(state_log_header_load(&s->cfg, header, info, &index_hash, et));
	return info->round == round ? RV_OK : rv_fail(et, RV_E_CORRUPT, "it holds round %" PRIu64, info->round);
}

enum rv_err statestore_replica_header(const struct statestore *s, struct state_replica_info *out,
									  struct rv_errtext *et) {
	uint8_t header[STATE_HEADER_BYTES];
	RV_TRY(read_header(s, STATE_FILE_REPLICA, 0, header, et));
	return state_replica_header_load(&s->cfg, header, out, et);
}

static void note_replica(const struct statestore *s, struct checkpoint_index *x) {
	struct state_replica_info info;
	if (statestore_replica_header(s, &info, NULL) != RV_OK)
		return;
	x->replica_round = info.round;
	x->replica_waits = s->waits_at_steps > 0 && info.steps_done == s->waits_at_steps;
}

static void note_file(const struct statestore *s, struct checkpoint_index *x, enum statestore_file kind, uint64_t round,
					  statestore_bad_header *bad) {
	struct rv_errtext et = {0};
	struct state_log_info log = {.attempt = 0};
	struct rv_hash chain;
	bool snapshot = kind == STATE_FILE_SNAPSHOT;
	enum rv_err e = snapshot ? load_snapshot_header(s, round, &chain, &et) : statestore_log_header(s, round, &log, &et);
	if (e == RV_E_NOTFOUND)
		return;
	checkpoint_index_add(x, snapshot ? STATE_KIND_SNAPSHOT : STATE_KIND_LOG, round, log.attempt,
						 e != RV_OK ? NULL
						 : snapshot ? &chain
									: &log.digest);
	if (e != RV_OK && bad)
		bad(s, kind, round, e, &et);
}

enum rv_err statestore_scan_with(const struct statestore *s, struct checkpoint_index *out, statestore_bad_header *bad,
								 struct rv_errtext *et) {
	checkpoint_index_init(out, s->theta0 != THETA0_IS_LACKED, &s->cfg.run_hash);
	DIR *d = opendir(s->dir);
	if (!d)
		return rv_fail_errno(et, errno, "%s", s->dir);
	errno = 0;
	for (struct dirent *e; (e = readdir(d)); errno = 0) {
		enum statestore_file kind;
		uint64_t round;
		if (!statestore_parse_name(e->d_name, &kind, &round))
			continue;
		if (kind == STATE_FILE_REPLICA)
			note_replica(s, out);
		else if (kind == STATE_FILE_SNAPSHOT || kind == STATE_FILE_LOG)
			note_file(s, out, kind, round, bad);
	}
	enum rv_err e = errno == 0 ? RV_OK : rv_fail_errno(et, errno, "%s: cannot be listed", s->dir);
	closedir(d);
	return e;
}

enum rv_err statestore_scan(const struct statestore *s, struct checkpoint_index *out, struct rv_errtext *et) {
	return statestore_scan_with(s, out, NULL, et);
}

/* ---- damaged files ---- */

static bool is_damaged_file(const char *name) {
	enum statestore_file kind;
	uint64_t round;
	char file[NAME_MAX + 1];
	size_t n = strlen(name), suffix = strlen(DAMAGED);
	if (n <= suffix || n - suffix > NAME_MAX || strcmp(name + n - suffix, DAMAGED) != 0)
		return false;
	memcpy(file, name, n - suffix);
	file[n - suffix] = '\0';
	return statestore_parse_name(file, &kind, &round);
}

/* How many there are, and the one changed first. */
static int count_damaged(DIR *d, char oldest[static NAME_MAX + 1]) {
	struct timespec first = {.tv_sec = 0};
	int n = 0;
	rewinddir(d);
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		if (!is_damaged_file(e->d_name) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		bool older = st.st_ctim.tv_sec < first.tv_sec ||
					 (st.st_ctim.tv_sec == first.tv_sec && st.st_ctim.tv_nsec < first.tv_nsec);
		if (n++ == 0 || older) {
			first = st.st_ctim;
			snprintf(oldest, NAME_MAX + 1, "%s", e->d_name);
		}
	}
	return n;
}

static void bound_damaged(const struct statestore *s) {
	char oldest[NAME_MAX + 1];
	DIR *d = opendir(s->dir);
	if (!d)
		return;
	for (int n = count_damaged(d, oldest); n > STATESTORE_MAX_DAMAGED; n--) {
		if (unlinkat(dirfd(d), oldest, 0) != 0)
			break;
		(void)count_damaged(d, oldest);
	}
	closedir(d);
}

void statestore_set_aside(const struct statestore *s, enum statestore_file kind, uint64_t round, enum rv_err why,
						  const struct rv_errtext *text) {
	char path[STATESTORE_PATH_BYTES], aside[STATESTORE_PATH_BYTES + sizeof DAMAGED];
	char notice[RV_ERRTEXT_BYTES + 3 * STATESTORE_PATH_BYTES];
	statestore_path(s, kind, round, path);
	snprintf(aside, sizeof aside, "%s" DAMAGED, path);
	bool named = strncmp(text->text, path, strlen(path)) == 0; /* the text begins with it */
	/* The replica has one name: what is saved next would replace that of a newer release. */
	bool keep = why == RV_E_CORRUPT || (why == RV_E_UNSUPPORTED && kind == STATE_FILE_REPLICA);
	bool moved = keep && rename(path, aside) == 0;
	snprintf(notice, sizeof notice, "%s cannot be used: %s%s%s", path,
			 named ? text->text + strlen(path) + 2 : text->text, moved ? "; it is kept as " : "", moved ? aside : "");
	if (s->notice)
		s->notice(s->notice_ctx, why, notice);
	if (moved)
		bound_damaged(s);
}

/* ---- leftovers ---- */

/* NAME of what is kept for auditors (worker/audit), by a number. */
static bool is_kept_file(const char *name) {
	static const char *const parts[][2] = {{"contribution-", ".rvc"}, {"inner-", ".rvi"}};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		const size_t n = strlen(parts[i][0]);
		const size_t digits = strncmp(name, parts[i][0], n) == 0 ? strspn(name + n, "0123456789") : 0;
		if (digits > 0 && strcmp(name + n + digits, parts[i][1]) == 0)
			return true;
	}
	return false;
}

/* NAME of a file that this program writes in the directory. */
static bool is_our_file(const char *name) {
	static const char *const others[] = {
		WEIGHTS_FILE,  "identity.key",           "run.link",       "member.conf",          "run.conf",
		"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"};
	enum statestore_file kind;
	uint64_t round;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (strcmp(name, others[i]) == 0)
			return true;
	return is_kept_file(name) || statestore_parse_name(name, &kind, &round);
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

void statestore_remove_leftovers(const struct statestore *s) {
	DIR *d = opendir(s->dir);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));)
		if (is_leftover(e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
}
