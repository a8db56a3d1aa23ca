/* statestore_means.c: the files means-S.rvm: what encoding means left (means_recovery.h). */
#include "worker/state/statestore_internal.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MODE = 0644 };

enum rv_err statestore_write_means(const struct statestore *s, uint64_t round, const uint8_t *payload, size_t n,
								   struct rv_errtext *et) {
	struct rv_file_writer w;
	uint8_t header[STATE_HEADER_BYTES];
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, STATE_FILE_MEANS, means_file_of(&s->cfg, round), path);
	state_means_header(&s->cfg, round, payload, n, header);
	RV_TRY(rv_file_writer_begin(&w, path, FILE_MODE, et));
	enum rv_err e = rv_file_writer_write(&w, header, sizeof header, et);
	if (e == RV_OK)
		e = rv_file_writer_write(&w, payload, n, et);
	return rv_file_writer_end(&w, e, et);
}

static bool log_attempt(void *ctx, uint64_t round, uint32_t *attempt) {
	struct state_log_info info;
	if (statestore_log_header(ctx, round, &info, NULL) != RV_OK)
		return false;
	*attempt = info.attempt;
	return true;
}

/* Reads the file for `round`; of another round: RV_E_NOTFOUND. */
static enum rv_err read_means(const struct statestore *s, uint64_t round, struct blob **out, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	uint8_t *file;
	const uint8_t *payload;
	size_t n, bytes;
	uint64_t found;
	statestore_path(s, STATE_FILE_MEANS, means_file_of(&s->cfg, round), path);
	enum rv_err e = rv_file_read(path, STATE_HEADER_BYTES + mean_residual_max_bytes(&s->cfg), &file, &n, et);
	if (e != RV_OK)
		return e == RV_E_RANGE ? rv_fail(et, RV_E_CORRUPT, "longer than a residual of this run") : e;
	e = state_means_load(&s->cfg, file, n, &found, &payload, &bytes, et);
	if (e == RV_OK && found != round)
		e = rv_fail(et, RV_E_NOTFOUND, "it is of round %" PRIu64, found);
	*out = e == RV_OK ? blob_new(bytes) : NULL;
	if (e == RV_OK && !*out)
		e = rv_fail(et, RV_E_NOMEM, "no memory for its %zu bytes", bytes);
	if (e == RV_OK)
		memcpy((*out)->data, payload, bytes);
	free(file);
	return e;
}

static struct blob *load(void *ctx, uint64_t round) {
	const struct statestore *s = ctx;
	struct rv_errtext et = {0};
	struct blob *b = NULL;
	enum rv_err e = read_means(s, round, &b, &et);
	if (e != RV_OK && e != RV_E_NOTFOUND)
		statestore_set_aside(s, STATE_FILE_MEANS, means_file_of(&s->cfg, round), e, &et);
	return b;
}

static void refuse(void *ctx, uint64_t round, const struct rv_errtext *text) {
	const struct statestore *s = ctx;
	statestore_set_aside(s, STATE_FILE_MEANS, means_file_of(&s->cfg, round), RV_E_CORRUPT, text);
}

void statestore_recover_means(const struct statestore *s, uint64_t round, struct mean_residual *m) {
	struct statestore copy = *s;
	const struct means_files files = {.ctx = &copy, .log_attempt = log_attempt, .load = load, .refuse = refuse};
	means_recover(&files, &s->cfg, round, m);
}
