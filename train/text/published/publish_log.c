/* publish_log.c: records of fixed size, each with a check of its own. */
#include "train/text/published/publish_log.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/os_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHECKED_BYTES = RV_HASH_BYTES + 3 * 8, RECORD_BYTES = CHECKED_BYTES + 8 };

enum rv_err publish_log_open(struct publish_log *l, const char *dir, struct rv_errtext *et) {
	int n = snprintf(l->path, sizeof l->path, "%s/" PUBLISH_LOG_NAME, dir);
	l->fd = -1;
	if (n >= (int)sizeof l->path)
		return rv_fail(et, RV_E_RANGE, "%.200s...: the path is too long", dir);
	l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	return l->fd >= 0 ? RV_OK : rv_fail_errno(et, errno, "%s: open", l->path);
}

void publish_log_close(struct publish_log *l) {
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
}

/* Returns a check of record i: one that was written for another place is not taken. */
static uint64_t check_of(uint64_t i, const uint8_t bytes[static CHECKED_BYTES]) {
	struct rv_hasher h = rv_hasher_of("rivulet publish record");
	rv_hash_u64(&h, i);
	rv_hash_update(&h, bytes, CHECKED_BYTES);
	const struct rv_hash hash = rv_hash_final(&h);
	struct rv_reader r = rv_reader_of(hash.b, sizeof hash.b);
	return rv_read_u64(&r);
}

enum rv_err publish_log_put(struct publish_log *l, uint64_t i, const struct publish_record *r, struct rv_errtext *et) {
	uint8_t bytes[RECORD_BYTES];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	rv_write_bytes(&w, r->hash.b, sizeof r->hash.b);
	rv_write_u64(&w, r->block);
	rv_write_u64(&w, r->skip);
	rv_write_u64(&w, r->bytes);
	rv_write_u64(&w, check_of(i, bytes));
	RV_ASSERT(!w.failed && rv_writer_len(&w) == RECORD_BYTES);
	if (!rv_write_at(l->fd, bytes, sizeof bytes, i * RECORD_BYTES))
		return rv_fail_errno(et, errno, "%s: write", l->path);
	return os_file_sync_data(l->fd) == 0 ? RV_OK : rv_fail_errno(et, errno, "%s: cannot be made durable", l->path);
}

enum rv_err publish_log_get(const struct publish_log *l, uint64_t i, struct publish_record *r, struct rv_errtext *et) {
	uint8_t bytes[RECORD_BYTES] = {0};
	ssize_t n = rv_read_at(l->fd, bytes, sizeof bytes, i * RECORD_BYTES);
	if (n < 0)
		return rv_fail_errno(et, errno, "%s: read", l->path);
	struct rv_reader in = rv_reader_of(bytes, sizeof bytes);
	rv_read_copy(&in, r->hash.b, sizeof r->hash.b);
	r->block = rv_read_u64(&in);
	r->skip = rv_read_u64(&in);
	r->bytes = rv_read_u64(&in);
	if (n != RECORD_BYTES || rv_read_u64(&in) != check_of(i, bytes))
		return rv_fail(et, RV_E_CORRUPT, "%s: record %" PRIu64 " is torn or missing", l->path, i);
	return RV_OK;
}
