/* backup_file.c: see backup_file.h. */
#include "coordinator/backup/backup_file.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_MODE = 0600, PIECE_BYTES = 1 << 16, LEAST_PAGE_BYTES = 512 };
enum { HASHED_BYTES = BACKUP_FILE_SEAL_BYTES - RV_HASH_BYTES /* of the seal */ };
#define NEXT_STEP "nothing was restored: fetch the file again from where it was made, or use another"

/* A file that is read from its start. */
struct source {
	int fd;
	const char *path;
	uint64_t bytes, at;
};

static enum rv_err find_size(struct source *s, struct rv_errtext *et) {
	struct stat st;
	if (fstat(s->fd, &st) != 0)
		return rv_fail_errno(et, errno, "%s: its size cannot be read", s->path);
	s->bytes = (uint64_t)st.st_size;
	return RV_OK;
}

static enum rv_err read_all(struct source *s, void *to, size_t n, struct rv_errtext *et) {
	uint8_t *into = to;
	while (n > 0) {
		ssize_t got = pread(s->fd, into, n, (off_t)s->at);
		if (got == 0)
			return rv_fail(et, RV_E_IO, "%s: became shorter while it was read", s->path);
		if (got < 0 && errno != EINTR)
			return rv_fail_errno(et, errno, "%s: cannot be read", s->path);
		size_t k = got > 0 ? (size_t)got : 0;
		into += k;
		s->at += k;
		n -= k;
	}
	return RV_OK;
}

/* Hashes the next n bytes, and writes them to `w` (NULL: nowhere). */
static enum rv_err pass(struct source *s, uint64_t n, struct rv_file_writer *w, struct rv_hasher *h,
						struct rv_errtext *et) {
	uint8_t *piece = malloc(PIECE_BYTES);
	enum rv_err e = piece != NULL ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory to read %s", s->path);
	while (e == RV_OK && n > 0) {
		size_t some = n < PIECE_BYTES ? (size_t)n : PIECE_BYTES;
		e = read_all(s, piece, some, et);
		if (e == RV_OK && w != NULL)
			e = rv_file_writer_write(w, piece, some, et);
		if (e == RV_OK)
			rv_hash_update(h, piece, some);
		n -= some;
	}
	free(piece);
	return e;
}

enum rv_err backup_file_seal(struct rv_file_writer *w, const struct run_keys *keys, struct rv_errtext *et) {
	struct source s = {.fd = w->fd, .path = w->tmp};
	struct rv_hasher h;
	struct rv_hash hash;
	uint8_t seal[BACKUP_FILE_SEAL_BYTES];
	struct rv_writer to = rv_writer_of(seal + RUN_KEYS_BYTES, sizeof seal - RUN_KEYS_BYTES);
	rv_hash_init(&h);
	RV_TRY(find_size(&s, et));
	RV_TRY(pass(&s, s.bytes, NULL, &h, et));
	run_keys_encode(keys, seal);
	rv_write_u32(&to, BACKUP_FILE_VERSION);
	rv_write_bytes(&to, BACKUP_FILE_MAGIC, BACKUP_FILE_MAGIC_BYTES);
	rv_hash_update(&h, seal, HASHED_BYTES);
	hash = rv_hash_final(&h);
	rv_write_bytes(&to, hash.b, RV_HASH_BYTES);
	enum rv_err e = rv_file_writer_patch(w, seal, sizeof seal, s.bytes, et);
	sodium_memzero(seal, sizeof seal);
	return e;
}

/* Checks the seal and fills *keys from it; `h` has hashed all that is before it. */
static enum rv_err check_seal(const struct source *s, const uint8_t seal[BACKUP_FILE_SEAL_BYTES], struct rv_hasher *h,
							  struct run_keys *keys, struct rv_errtext *et) {
	struct rv_hash hash, want;
	char magic[BACKUP_FILE_MAGIC_BYTES];
	struct rv_reader r = rv_reader_of(seal + RUN_KEYS_BYTES, BACKUP_FILE_SEAL_BYTES - RUN_KEYS_BYTES);
	uint32_t version = rv_read_u32(&r);
	rv_read_copy(&r, magic, sizeof magic);
	rv_read_copy(&r, want.b, RV_HASH_BYTES);
	rv_hash_update(h, seal, HASHED_BYTES);
	hash = rv_hash_final(h);
	if (!rv_hash_equal(&hash, &want))
		return rv_fail(et, RV_E_CORRUPT, "%s: %s; " NEXT_STEP, s->path,
					   memcmp(magic, BACKUP_FILE_MAGIC, sizeof magic) == 0
						   ? "damaged: it does not match its hash"
						   : "it has no seal at its end: it is no backup, or cut off");
	if (version != BACKUP_FILE_VERSION)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "%s: a backup of version %u, this program reads version %d: restore it with the release that "
					   "made it, or a later one",
					   s->path, version, (int)BACKUP_FILE_VERSION);
	if ((s->bytes - BACKUP_FILE_SEAL_BYTES) % LEAST_PAGE_BYTES != 0)
		return rv_fail(et, RV_E_CORRUPT, "%s: what is sealed are no whole pages; " NEXT_STEP, s->path);
	run_keys_decode(seal, keys);
	return RV_OK;
}

static enum rv_err copy_opened(struct source *s, struct rv_file_writer *w, struct run_keys *keys,
							   struct rv_errtext *et) {
	struct rv_hasher h;
	uint8_t seal[BACKUP_FILE_SEAL_BYTES];
	rv_hash_init(&h);
	RV_TRY(find_size(s, et));
	if (s->bytes <= sizeof seal)
		return rv_fail(et, RV_E_CORRUPT,
					   "%s: %" PRIu64 " bytes are no backup: it is another file, or cut off; " NEXT_STEP, s->path,
					   s->bytes);
	RV_TRY(pass(s, s->bytes - sizeof seal, w, &h, et));
	RV_TRY(read_all(s, seal, sizeof seal, et));
	enum rv_err e = check_seal(s, seal, &h, keys, et);
	sodium_memzero(seal, sizeof seal);
	return e;
}

enum rv_err backup_file_open(const char *path, const char *to, struct run_keys *keys, struct rv_errtext *et) {
	struct rv_file_writer w;
	struct source s = {.fd = open(path, O_RDONLY | O_CLOEXEC), .path = path};
	if (s.fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot be opened", path);
	enum rv_err e = rv_file_writer_begin(&w, to, SECRET_MODE, et);
	if (e == RV_OK)
		e = rv_file_writer_end(&w, copy_opened(&s, &w, keys, et), et);
	(void)close(s.fd);
	return e;
}
