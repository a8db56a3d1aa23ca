/* hash_file.c: the hash of a file, read in pieces. */
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 16 };

static enum rv_err hash_all(int fd, const char *path, struct rv_hasher *h, struct rv_errtext *et) {
	uint8_t piece[PIECE_BYTES];
	struct stat st;
	if (fstat(fd, &st) != 0)
		return rv_fail_errno(et, errno, "%s: cannot stat", path);
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "%s: not a regular file", path);
	for (;;) {
		ssize_t n = read(fd, piece, sizeof piece);
		if (n == 0)
			return RV_OK;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rv_fail_errno(et, errno, "%s: cannot read", path);
		rv_hash_update(h, piece, (size_t)n);
	}
}

enum rv_err rv_hash_file(const char *path, struct rv_hash *out, struct rv_errtext *et) {
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot open for reading", path);
	struct rv_hasher h;
	rv_hash_init(&h);
	enum rv_err e = hash_all(fd, path, &h, et);
	(void)close(fd);
	rv_hash_final(&h, out);
	return e;
}
