/* file_hash.c: see file_hash.h. */
#include "train/text/published/file_hash.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PART_BYTES = 1 << 16 };

static enum rv_err hash_bytes(int fd, const char *path, uint64_t bytes, struct rv_hash *out, struct rv_errtext *et) {
	uint8_t part[PART_BYTES];
	struct rv_hasher h;
	rv_hash_init(&h);
	for (uint64_t at = 0; at < bytes;) {
		size_t want = bytes - at < sizeof part ? (size_t)(bytes - at) : sizeof part;
		ssize_t n = rv_read_at(fd, part, want, at);
		if (n < 0)
			return rv_fail_errno(et, errno, "%s: read at byte %" PRIu64, path, at);
		if ((size_t)n < want)
			return rv_fail(et, RV_E_CORRUPT, "%s: it ended at byte %" PRIu64 " of %" PRIu64, path, at + (size_t)n,
						   bytes);
		rv_hash_update(&h, part, want);
		at += want;
	}
	*out = rv_hash_final(&h);
	return RV_OK;
}

enum rv_err file_hash_open(int fd, const char *path, uint64_t bytes, struct rv_hash *out, struct rv_errtext *et) {
	struct stat st;
	if (fstat(fd, &st) != 0)
		return rv_fail_errno(et, errno, "%s: stat", path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != bytes)
		return rv_fail(et, RV_E_CORRUPT, "%s: %" PRIu64 " bytes, must have %" PRIu64, path, (uint64_t)st.st_size,
					   bytes);
	return hash_bytes(fd, path, bytes, out, et);
}

enum rv_err file_hash(const char *path, struct rv_hash *out, struct rv_errtext *et) {
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: open", path);
	enum rv_err e = fstat(fd, &st) == 0 ? hash_bytes(fd, path, (uint64_t)st.st_size, out, et)
										: rv_fail_errno(et, errno, "%s: stat", path);
	(void)close(fd);
	return e;
}
