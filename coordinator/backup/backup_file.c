/* backup_file.c: see backup_file.h. */
#include "coordinator/backup/backup_file.h"

#include "base/file.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_MODE = 0600, PIECE_BYTES = 1 << 16, LEAST_PAGE_BYTES = 512 };

struct seal {
	char magic[8];
	struct rv_hash hash;
};
_Static_assert(sizeof(struct seal) == 40, "as backup_file.h says");
static const char SEAL_MAGIC[8] = "RVBKSEAL";

/* A file that is read from its start. */
struct source {
	int fd;
	const char *path;
	uint64_t bytes; /* all of it */
	bool sealed;    /* of a backup, once it was read */
};

static enum rv_err open_source(const char *path, struct source *s, struct rv_errtext *et) {
	struct stat st;
	*s = (struct source){.fd = open(path, O_RDONLY | O_CLOEXEC), .path = path};
	if (s->fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot be opened", path);
	if (fstat(s->fd, &st) != 0) {
		(void)close(s->fd);
		return rv_fail_errno(et, errno, "%s: its size cannot be read", path);
	}
	s->bytes = (uint64_t)st.st_size;
	return RV_OK;
}

static enum rv_err read_all(const struct source *s, void *to, size_t n, struct rv_errtext *et) {
	uint8_t *at = to;
	while (n > 0) {
		ssize_t got = read(s->fd, at, n);
		if (got == 0)
			return rv_fail(et, RV_E_IO, "%s: became shorter while it was read", s->path);
		if (got < 0 && errno != EINTR)
			return rv_fail_errno(et, errno, "%s: cannot be read", s->path);
		at += got > 0 ? got : 0;
		n -= got > 0 ? (size_t)got : 0;
	}
	return RV_OK;
}

/* The next n bytes, and their hash. */
static enum rv_err copy_bytes(const struct source *s, uint64_t n, struct rv_file_writer *w, struct rv_hash *hash,
							  struct rv_errtext *et) {
	struct rv_hasher h;
	uint8_t *piece = malloc(PIECE_BYTES);
	enum rv_err e = piece != NULL ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory to copy %s", s->path);
	rv_hash_init(&h);
	while (e == RV_OK && n > 0) {
		size_t some = n < PIECE_BYTES ? (size_t)n : PIECE_BYTES;
		e = read_all(s, piece, some, et);
		if (e == RV_OK)
			e = rv_file_writer_write(w, piece, some, et);
		if (e == RV_OK)
			rv_hash_update(&h, piece, some);
		n -= some;
	}
	rv_hash_final(&h, hash);
	free(piece);
	return e;
}

static enum rv_err write_sealed(struct source *s, struct rv_file_writer *w, struct rv_errtext *et) {
	struct seal seal;
	memcpy(seal.magic, SEAL_MAGIC, sizeof seal.magic);
	RV_TRY(copy_bytes(s, s->bytes, w, &seal.hash, et));
	return rv_file_writer_write(w, &seal, sizeof seal, et);
}

static enum rv_err write_opened(struct source *s, struct rv_file_writer *w, struct rv_errtext *et) {
	struct rv_hash hash;
	struct seal seal;
	uint64_t rest = s->bytes % LEAST_PAGE_BYTES;
	if (s->bytes == 0 || (rest != 0 && rest != sizeof seal))
		return rv_fail(et, RV_E_CORRUPT,
					   "%s: %" PRIu64 " bytes are not the size of a backup: it is another file, or cut off; %s",
					   s->path, s->bytes, BACKUP_FILE_NEXT_STEP);
	RV_TRY(copy_bytes(s, s->bytes - rest, w, &hash, et));
	if (rest == 0)
		return RV_OK;
	RV_TRY(read_all(s, &seal, sizeof seal, et));
	if (memcmp(seal.magic, SEAL_MAGIC, sizeof seal.magic) != 0 || !rv_hash_equal(&seal.hash, &hash))
		return rv_fail(et, RV_E_CORRUPT, "%s: damaged: it does not match its hash; %s", s->path, BACKUP_FILE_NEXT_STEP);
	s->sealed = true;
	return RV_OK;
}

/* *sealed: of a backup. */
static enum rv_err copy(const char *from, const char *to,
						enum rv_err (*write)(struct source *s, struct rv_file_writer *w, struct rv_errtext *et),
						bool *sealed, struct rv_errtext *et) {
	struct rv_file_writer w;
	struct source s;
	RV_TRY(open_source(from, &s, et));
	enum rv_err e = rv_file_writer_begin(&w, to, SECRET_MODE, et);
	if (e == RV_OK) {
		e = write(&s, &w, et);
		if (e != RV_OK)
			rv_file_writer_abandon(&w);
		else
			e = rv_file_writer_commit(&w, et);
	}
	(void)close(s.fd);
	*sealed = s.sealed;
	return e;
}

enum rv_err backup_file_seal(const char *from, const char *path, struct rv_errtext *et) {
	bool sealed;
	return copy(from, path, write_sealed, &sealed, et);
}

enum rv_err backup_file_open(const char *path, const char *to, bool *sealed, struct rv_errtext *et) {
	return copy(path, to, write_opened, sealed, et);
}
