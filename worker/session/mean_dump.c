/* mean_dump.c: see mean_dump.h. Nothing without RV_FAILPOINTS. */
#include "worker/session/mean_dump.h"

#ifdef RV_FAILPOINTS

#include "base/assert.h"
#include "base/bytes.h"
#include "base/file.h"
#include "worker/session/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 512 };

struct dump {
	const char *kind;
	uint64_t round, which; /* boot or attempt */
	const uint8_t *vector;
	const struct codec *codec; /* of its values */
};

static void write_header(const struct session *s, const struct dump *d, size_t bytes,
						 uint8_t header[MEAN_DUMP_HEADER_BYTES]) {
	struct rv_writer w = rv_writer_of(header, MEAN_DUMP_HEADER_BYTES);
	rv_write_bytes(&w, MEAN_DUMP_MAGIC, 8);
	rv_write_u64(&w, trainer_global(s->trainer)->cfg.n);
	rv_write_u64(&w, d->round);
	rv_write_u64(&w, s->member.member);
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

static void dump(const struct session *s, const struct dump *d) {
	const struct global_config *g = &s->store.cfg;
	const char *dir = getenv("RIVULET_DUMP");
	const struct chunking exchanged = global_round_chunks(g, d->round);
	size_t bytes = chunking_total_bytes(&exchanged, d->codec);
	uint8_t header[MEAN_DUMP_HEADER_BYTES];
	char path[PATH_BYTES];
	if (dir == NULL)
		return;
	(void)snprintf(path, sizeof path, "%s/%s-%" PRIu64 "-%u-%" PRIu64, dir, d->kind, d->round, s->member.member,
				   d->which);
	if (is_there(path, d->vector, bytes))
		return;
	write_header(s, d, bytes, header);
	write_file(path, header, d->vector, bytes);
}

void mean_dump_contribution(const struct session *s, uint64_t round) {
	dump(s, &(struct dump){"contribution", round, round_boot(session_round(s)), trainer_encoded(s->trainer),
						   global_sent(&s->store.cfg)});
}

void mean_dump_reduced(const struct session *s, uint64_t round, uint32_t attempt) {
	dump(s, &(struct dump){"reduced", round, attempt, allreduce_reduced(s->reduce), s->store.cfg.codec});
}

#endif
