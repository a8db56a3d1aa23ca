/* replica_file.c: see replica_file.h. */
#include "worker/state/replica_file.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct replica_file {
	int fd;
	struct state_replica_info info;
};

static enum rv_err read_at(int fd, void *out, size_t n, uint64_t at, struct rv_errtext *et) {
	const ssize_t got = rv_read_at(fd, out, n, at);
	if (got < 0)
		return rv_fail_errno(et, errno, "cannot read at byte %llu", (unsigned long long)at);
	return (size_t)got == n
			   ? RV_OK
			   : rv_fail(et, RV_E_CORRUPT, "cut short: it ends at byte %llu", (unsigned long long)(at + (uint64_t)got));
}

static enum rv_err check_size(const struct replica_file *f, struct rv_errtext *et) {
	struct stat st;
	if (fstat(f->fd, &st) != 0)
		return rv_fail_errno(et, errno, "cannot stat");
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "not a regular file");
	const uint64_t bytes = (uint64_t)st.st_size;
	if (bytes - STATE_HEADER_BYTES == f->info.payload_bytes)
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "%llu bytes, its header says %llu: cut short, or something follows",
				   (unsigned long long)bytes, (unsigned long long)f->info.payload_bytes + STATE_HEADER_BYTES);
}

static enum rv_err read_header(const struct global_config *c, struct replica_file *f, struct rv_errtext *et) {
	uint8_t header[STATE_HEADER_BYTES];
	RV_TRY(read_at(f->fd, header, sizeof header, 0, et));
	RV_TRY(state_replica_header_load(c, header, &f->info, et));
	return check_size(f, et);
}

enum rv_err replica_file_of(const struct global_config *c, int fd, struct replica_file **out, struct rv_errtext *et) {
	struct replica_file *f = calloc(1, sizeof *f);
	if (!f) {
		(void)close(fd);
		return rv_fail(et, RV_E_NOMEM, "no memory to read it");
	}
	f->fd = fd;
	const enum rv_err e = read_header(c, f, et);
	if (e != RV_OK) {
		replica_file_free(f);
		return e;
	}
	*out = f;
	return RV_OK;
}

enum rv_err replica_file_open(const struct global_config *c, const char *path, struct replica_file **out,
							  struct rv_errtext *et) {
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return rv_fail_errno(et, errno, "cannot open for reading");
	return replica_file_of(c, fd, out, et);
}

void replica_file_free(struct replica_file *f) {
	if (!f)
		return;
	(void)close(f->fd);
	free(f);
}

const struct state_replica_info *replica_file_info(const struct replica_file *f) {
	return &f->info;
}

static enum rv_err read_payload(void *ctx, uint64_t at, void *out, size_t n, struct rv_errtext *et) {
	const struct replica_file *f = ctx;
	return read_at(f->fd, out, n, STATE_HEADER_BYTES + at, et);
}

struct byte_source replica_file_payload(struct replica_file *f) {
	return (struct byte_source){f, read_payload};
}
