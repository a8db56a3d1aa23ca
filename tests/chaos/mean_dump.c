/* mean_dump.c: see mean_dump.h. The linker puts it between the worker and what it calls
 * (--wrap). */
#include "mean_dump.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/file.h"
#include "worker/mesh/allreduce.h"
#include "worker/state/statestore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum rv_err new_fn(const struct allreduce_config *cfg, struct allreduce **out, struct rv_errtext *et);
typedef enum rv_err start_fn(struct allreduce *a, int64_t now_us, const struct document *d,
							 const struct allreduce_inputs *in, struct rv_errtext *et);
typedef enum rv_err write_fn(const struct statestore *s, struct state_log_info *info, const uint8_t *payload,
							 struct rv_errtext *et);
new_fn __real_allreduce_new, __wrap_allreduce_new;
start_fn __real_allreduce_start, __wrap_allreduce_start;
write_fn __real_statestore_write_log, __wrap_statestore_write_log;

enum { PATH_BYTES = 512 };

struct dump {
	const char *kind;
	uint64_t round, which; /* boot or attempt */
	const uint8_t *vector;
	const struct global_config *global;
	const struct codec *codec; /* of its values */
};

static struct allreduce_config worker; /* the process has one */

static void write_header(const struct dump *d, size_t bytes, uint8_t header[MEAN_DUMP_HEADER_BYTES]) {
	struct rv_writer w = rv_writer_of(header, MEAN_DUMP_HEADER_BYTES);
	rv_write_bytes(&w, MEAN_DUMP_MAGIC, 8);
	rv_write_u64(&w, d->global->n);
	rv_write_u64(&w, d->round);
	rv_write_u64(&w, worker.self_member);
	rv_write_u64(&w, d->which);
	rv_write_u64(&w, bytes);
	RV_ASSERT(!w.failed);
}

static void write_file(const char *path, const uint8_t *header, const uint8_t *vector, size_t bytes) {
	char tmp[PATH_BYTES + 8];
	(void)snprintf(tmp, sizeof tmp, "%s.tmp", path);
	FILE *f = fopen(tmp, "wbe");
	RV_ASSERT(f != NULL);
	bool ok = fwrite(header, 1, MEAN_DUMP_HEADER_BYTES, f) == MEAN_DUMP_HEADER_BYTES;
	ok = fwrite(vector, 1, bytes, f) == bytes && ok;
	ok = fclose(f) == 0 && ok;
	RV_ASSERT(ok && rename(tmp, path) == 0);
}

/* Returns true if the file exists; it must be the same. */
static bool is_there(const char *path, const uint8_t *vector, size_t bytes) {
	uint8_t *was;
	size_t n;
	if (rv_file_read(path, MEAN_DUMP_HEADER_BYTES + bytes, &was, &n, NULL) != RV_OK)
		return false;
	bool same = n == MEAN_DUMP_HEADER_BYTES + bytes && memcmp(was + MEAN_DUMP_HEADER_BYTES, vector, bytes) == 0;
	free(was);
	RV_ASSERT(same);
	return true;
}

static void dump(const struct dump *d) {
	const char *dir = getenv("RIVULET_DUMP");
	const struct chunking exchanged = global_round_chunks(d->global, d->round);
	size_t bytes = chunking_total_bytes(&exchanged, d->codec);
	uint8_t header[MEAN_DUMP_HEADER_BYTES];
	char path[PATH_BYTES];
	if (dir == NULL)
		return;
	(void)snprintf(path, sizeof path, "%s/%s-%" PRIu64 "-%u-%" PRIu64, dir, d->kind, d->round, worker.self_member,
				   d->which);
	if (is_there(path, d->vector, bytes))
		return;
	write_header(d, bytes, header);
	write_file(path, header, d->vector, bytes);
}

enum rv_err __wrap_allreduce_new(const struct allreduce_config *cfg, struct allreduce **out, struct rv_errtext *et) {
	worker = *cfg;
	return __real_allreduce_new(cfg, out, et);
}

enum rv_err __wrap_allreduce_start(struct allreduce *a, int64_t now_us, const struct document *d,
								   const struct allreduce_inputs *in, struct rv_errtext *et) {
	const struct member_ref *self = &d->members[document_find(d, worker.self_member)];
	dump(&(struct dump){"contribution", d->round, self->boot, in->own, worker.global, global_sent(worker.global)});
	return __real_allreduce_start(a, now_us, d, in, et);
}

/* Entries that were fetched (attempt 0) are of no all-reduce with this worker. */
enum rv_err __wrap_statestore_write_log(const struct statestore *s, struct state_log_info *info, const uint8_t *payload,
										struct rv_errtext *et) {
	if (info->attempt > 0)
		dump(&(struct dump){"reduced", info->round, info->attempt, payload, &s->cfg, s->cfg.codec});
	return __real_statestore_write_log(s, info, payload, et);
}
