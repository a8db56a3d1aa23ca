/* mapped_file.c: the system copies, and returns an error where memcpy would raise SIGBUS. */
#include "train/text/tokenizer/mapped_file.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/os_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum rv_err map(struct mapped_file *m, int fd, struct rv_errtext *et) {
	struct stat st;
	if (fstat(fd, &st) != 0)
		return rv_fail_errno(et, errno, "training data %s: fstat", m->path);
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "training data %s: not a regular file", m->path);
	m->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (st.st_size == 0)
		return RV_OK;
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return rv_fail_errno(et, errno, "training data %s: mmap of %lld bytes", m->path, (long long)st.st_size);
	m->at = at;
	m->bytes = (size_t)st.st_size;
	return RV_OK;
}

/* Lets the kernel copy `n` bytes from `from`. Returns how many it copied, perhaps fewer, or -1. */
static ssize_t copy(const struct mapped_file *m, size_t from, size_t n, void *out) {
	return os_memory_read(out, m->at + from, n);
}

static bool forbidden(ssize_t got) {
	return got < 0 && (errno == ENOSYS || errno == EPERM);
}

/* Closes the file, unless a sandbox forbids that call, to spare file descriptors. */
static void close_unless_needed(struct mapped_file *m) {
	uint8_t byte;
	if (m->at && forbidden(copy(m, 0, 1, &byte)))
		return;
	(void)close(m->fd);
	m->fd = -1;
}

/* Opens with O_NONBLOCK, so that a FIFO cannot block before fstat refuses it. */
enum rv_err mapped_file_open(struct mapped_file *m, const char *path, struct rv_errtext *et) {
	*m = (struct mapped_file){.path = strdup(path), .fd = -1};
	if (!m->path)
		return rv_fail(et, RV_E_NOMEM, "training data %s: no memory for its name", path);
	m->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum rv_err e = m->fd < 0 ? rv_fail_errno(et, errno, "training data %s: open", path) : map(m, m->fd, et);
	if (e == RV_OK)
		close_unless_needed(m);
	else
		mapped_file_close(m);
	return e;
}

void mapped_file_close(struct mapped_file *m) {
	if (m->at)
		munmap((void *)(uintptr_t)m->at, m->bytes);
	if (m->path && m->fd >= 0)
		(void)close(m->fd);
	free(m->path);
	*m = (struct mapped_file){.fd = -1};
}

enum rv_err mapped_file_read(const struct mapped_file *m, size_t from, size_t n, void *out, struct rv_errtext *et) {
	RV_ASSERT(from <= m->bytes && n <= m->bytes - from);
	if (n == 0)
		return RV_OK;
	ssize_t got = copy(m, from, n, out);
	if (got == (ssize_t)n)
		return RV_OK;
	/* Reads from the file: slower, and safe from truncation too. */
	if (forbidden(got) && m->fd >= 0 && rv_read_at(m->fd, out, n, from) == (ssize_t)n)
		return RV_OK;
	return rv_fail(et, RV_E_IO,
				   "training data %s: bytes %zu to %zu of %zu cannot be read: the file was cut short while it "
				   "was in use, or its disk failed; restore it and start again",
				   m->path, from, from + n, m->bytes);
}
