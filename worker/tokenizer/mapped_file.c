/* mapped_file.c: process_vm_readv(2) on ourselves: a copy that answers EFAULT where memcpy would be killed. */
#include "worker/tokenizer/mapped_file.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
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

/* O_NONBLOCK: a FIFO must not hold us up before fstat says what it is. */
enum rv_err mapped_file_open(struct mapped_file *m, const char *path, struct rv_errtext *et) {
	*m = (struct mapped_file){.path = strdup(path)};
	if (!m->path)
		return rv_fail(et, RV_E_NOMEM, "training data %s: no memory for its name", path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum rv_err e = fd < 0 ? rv_fail_errno(et, errno, "training data %s: open", path) : map(m, fd, et);
	if (fd >= 0)
		close(fd);
	if (e != RV_OK)
		mapped_file_close(m);
	return e;
}

void mapped_file_close(struct mapped_file *m) {
	if (m->at)
		munmap((void *)(uintptr_t)m->at, m->bytes);
	free(m->path);
	*m = (struct mapped_file){0};
}

enum rv_err mapped_file_read(const struct mapped_file *m, size_t from, size_t n, void *out, struct rv_errtext *et) {
	RV_ASSERT(from <= m->bytes && n <= m->bytes - from);
	if (n == 0)
		return RV_OK;
	const struct iovec here = {out, n}, there = {(void *)(uintptr_t)(m->at + from), n};
	ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
	if (got == (ssize_t)n)
		return RV_OK;
	if (got < 0 && (errno == ENOSYS || errno == EPERM)) { /* a sandbox that has no such call: as anyone else would */
		memcpy(out, m->at + from, n);
		return RV_OK;
	}
	return rv_fail(et, RV_E_IO,
				   "training data %s: bytes %zu to %zu of %zu cannot be read any more: the file was cut short while it "
				   "was in use, or its disk failed; restore it and start again",
				   m->path, from, from + n, m->bytes);
}
