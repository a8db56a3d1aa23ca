/* backup_encryption.c: see backup_encryption.h. */
#include "coordinator/backup/backup_encryption.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	VERSION = 1,
	MAGIC_BYTES = 8,
	HEAD_BYTES = MAGIC_BYTES + 4 + 8 + 8 + crypto_pwhash_SALTBYTES + crypto_secretstream_xchacha20poly1305_HEADERBYTES,
	PIECE_BYTES = 1 << 16,
	ENCRYPTED_BYTES = PIECE_BYTES + crypto_secretstream_xchacha20poly1305_ABYTES,
	SECRET_MODE = 0600
};
static const char magic[MAGIC_BYTES] = {'R', 'V', 'B', 'K', 'C', 'R', 'P', 'T'};
#define OPERATIONS      crypto_pwhash_OPSLIMIT_MODERATE
#define MEMORY          crypto_pwhash_MEMLIMIT_MODERATE
#define MOST_OPERATIONS crypto_pwhash_OPSLIMIT_SENSITIVE
#define MOST_MEMORY     crypto_pwhash_MEMLIMIT_SENSITIVE
#define NEXT_STEP       "fetch the file again from where it was made, or use another"

struct head {
	uint64_t operations, memory;
	uint8_t salt[crypto_pwhash_SALTBYTES];
	uint8_t stream[crypto_secretstream_xchacha20poly1305_HEADERBYTES];
};

/* One file on its way to another. */
struct passage {
	int from;
	uint64_t at;
	const char *path; /* of `from` */
	struct rv_file_writer to;
	crypto_secretstream_xchacha20poly1305_state stream;
	uint8_t plain[PIECE_BYTES], encrypted[ENCRYPTED_BYTES];
};

/* ---- the passphrase ---- */

enum rv_err backup_passphrase_read(const char *path, char out[BACKUP_PASSPHRASE_BYTES], struct rv_errtext *et) {
	const bool is_stdin = strcmp(path, "-") == 0;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return rv_fail_errno(et, errno, "--passphrase-file %s", path);
	size_t n = 0;
	ssize_t got = 1;
	while (n < BACKUP_PASSPHRASE_BYTES && got > 0 && memchr(out, '\n', n) == NULL) {
		got = read(fd, out + n, BACKUP_PASSPHRASE_BYTES - n);
		n += got > 0 ? (size_t)got : 0;
	}
	if (!is_stdin)
		(void)close(fd);
	if (got < 0)
		return rv_fail_errno(et, errno, "--passphrase-file %s", path);
	const char *end = memchr(out, '\n', n);
	n = end != NULL ? (size_t)(end - out) : n;
	if (n == 0)
		return rv_fail(et, RV_E_INVALID, "--passphrase-file %s: its first line is empty", path);
	if (n == BACKUP_PASSPHRASE_BYTES)
		return rv_fail(et, RV_E_RANGE, "--passphrase-file %s: its first line has more than %d bytes", path,
					   BACKUP_PASSPHRASE_BYTES - 1);
	out[n] = '\0';
	return RV_OK;
}

static enum rv_err derive(const struct head *h, const char *passphrase,
						  uint8_t key[crypto_secretstream_xchacha20poly1305_KEYBYTES], struct rv_errtext *et) {
	if (crypto_pwhash(key, crypto_secretstream_xchacha20poly1305_KEYBYTES, passphrase, strlen(passphrase), h->salt,
					  h->operations, (size_t)h->memory, crypto_pwhash_ALG_ARGON2ID13) == 0)
		return RV_OK;
	return rv_fail(et, RV_E_NOMEM, "no memory for the passphrase: it takes %llu MiB",
				   (unsigned long long)(h->memory >> 20));
}

/* ---- the head ---- */

static void write_head(const struct head *h, uint8_t out[HEAD_BYTES]) {
	struct rv_writer w = rv_writer_of(out, HEAD_BYTES);
	rv_write_bytes(&w, magic, sizeof magic);
	rv_write_u32(&w, VERSION);
	rv_write_u64(&w, h->operations);
	rv_write_u64(&w, h->memory);
	rv_write_bytes(&w, h->salt, sizeof h->salt);
	rv_write_bytes(&w, h->stream, sizeof h->stream);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == HEAD_BYTES);
}

static enum rv_err read_head(struct passage *p, struct head *h, struct rv_errtext *et) {
	uint8_t bytes[HEAD_BYTES];
	if (rv_read_at(p->from, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes || memcmp(bytes, magic, sizeof magic) != 0)
		return rv_fail(et, RV_E_CORRUPT, "%s: it is no encrypted backup, or cut off; " NEXT_STEP, p->path);
	struct rv_reader r = rv_reader_of(bytes + sizeof magic, sizeof bytes - sizeof magic);
	uint32_t version = rv_read_u32(&r);
	h->operations = rv_read_u64(&r);
	h->memory = rv_read_u64(&r);
	rv_read_copy(&r, h->salt, sizeof h->salt);
	rv_read_copy(&r, h->stream, sizeof h->stream);
	p->at = HEAD_BYTES;
	if (version != VERSION)
		return rv_fail(et, RV_E_UNSUPPORTED, "%s: encrypted in version %u, this program reads version %d", p->path,
					   version, (int)VERSION);
	if (h->operations < crypto_pwhash_OPSLIMIT_MIN || h->operations > MOST_OPERATIONS ||
		h->memory < crypto_pwhash_MEMLIMIT_MIN || h->memory > MOST_MEMORY)
		return rv_fail(et, RV_E_RANGE, "%s: asks for %llu MiB and %llu passes to open it, at most %llu and %llu",
					   p->path, (unsigned long long)(h->memory >> 20), (unsigned long long)h->operations,
					   (unsigned long long)(MOST_MEMORY >> 20), (unsigned long long)MOST_OPERATIONS);
	return RV_OK;
}

/* ---- pieces ---- */

static enum rv_err read_piece(struct passage *p, void *into, size_t n, size_t *got, struct rv_errtext *et) {
	ssize_t k = rv_read_at(p->from, into, n, p->at);
	if (k < 0)
		return rv_fail_errno(et, errno, "%s: cannot be read", p->path);
	*got = (size_t)k;
	p->at += *got;
	return RV_OK;
}

/* The last piece is a short one, perhaps empty. */
static enum rv_err encrypt_pieces(struct passage *p, struct rv_errtext *et) {
	for (size_t n = PIECE_BYTES; n == PIECE_BYTES;) {
		RV_TRY(read_piece(p, p->plain, PIECE_BYTES, &n, et));
		const uint8_t tag = n < PIECE_BYTES ? crypto_secretstream_xchacha20poly1305_TAG_FINAL
											: crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
		(void)crypto_secretstream_xchacha20poly1305_push(&p->stream, p->encrypted, NULL, p->plain, n, NULL, 0, tag);
		RV_TRY(rv_file_writer_write(&p->to, p->encrypted, n + crypto_secretstream_xchacha20poly1305_ABYTES, et));
	}
	return RV_OK;
}

/* The first piece is empty: it shows whether the passphrase is the right one. */
static enum rv_err push_check(struct passage *p, struct rv_errtext *et) {
	(void)crypto_secretstream_xchacha20poly1305_push(&p->stream, p->encrypted, NULL, NULL, 0, NULL, 0,
													 crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
	return rv_file_writer_write(&p->to, p->encrypted, crypto_secretstream_xchacha20poly1305_ABYTES, et);
}

static enum rv_err pull_check(struct passage *p, struct rv_errtext *et) {
	uint8_t tag;
	size_t n = 0;
	RV_TRY(read_piece(p, p->encrypted, crypto_secretstream_xchacha20poly1305_ABYTES, &n, et));
	if (crypto_secretstream_xchacha20poly1305_pull(&p->stream, p->plain, NULL, &tag, p->encrypted, n, NULL, 0) != 0)
		return rv_fail(et, RV_E_AUTH, "%s: the passphrase is another one", p->path);
	return RV_OK;
}

static enum rv_err decrypt_piece(struct passage *p, size_t n, uint8_t *tag, struct rv_errtext *et) {
	if (n < crypto_secretstream_xchacha20poly1305_ABYTES)
		return rv_fail(et, RV_E_CORRUPT, "%s: cut off; " NEXT_STEP, p->path);
	if (crypto_secretstream_xchacha20poly1305_pull(&p->stream, p->plain, NULL, tag, p->encrypted, n, NULL, 0) != 0)
		return rv_fail(et, RV_E_CORRUPT, "%s: damaged; " NEXT_STEP, p->path);
	return rv_file_writer_write(&p->to, p->plain, n - crypto_secretstream_xchacha20poly1305_ABYTES, et);
}

static enum rv_err decrypt_pieces(struct passage *p, struct rv_errtext *et) {
	uint8_t tag = crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
	size_t n = 0;
	while (tag == crypto_secretstream_xchacha20poly1305_TAG_MESSAGE) {
		RV_TRY(read_piece(p, p->encrypted, ENCRYPTED_BYTES, &n, et));
		RV_TRY(decrypt_piece(p, n, &tag, et));
	}
	RV_TRY(read_piece(p, p->encrypted, 1, &n, et));
	return n == 0 ? RV_OK : rv_fail(et, RV_E_CORRUPT, "%s: something follows its end; " NEXT_STEP, p->path);
}

/* ---- files ---- */

static enum rv_err encrypt_opened(struct passage *p, const char *passphrase, struct rv_errtext *et) {
	struct head h = {.operations = OPERATIONS, .memory = MEMORY};
	uint8_t key[crypto_secretstream_xchacha20poly1305_KEYBYTES], bytes[HEAD_BYTES];
	randombytes_buf(h.salt, sizeof h.salt);
	RV_TRY(derive(&h, passphrase, key, et));
	(void)crypto_secretstream_xchacha20poly1305_init_push(&p->stream, h.stream, key);
	sodium_memzero(key, sizeof key);
	write_head(&h, bytes);
	RV_TRY(rv_file_writer_write(&p->to, bytes, sizeof bytes, et));
	RV_TRY(push_check(p, et));
	return encrypt_pieces(p, et);
}

static enum rv_err decrypt_opened(struct passage *p, const char *passphrase, struct rv_errtext *et) {
	struct head h;
	uint8_t key[crypto_secretstream_xchacha20poly1305_KEYBYTES];
	RV_TRY(read_head(p, &h, et));
	RV_TRY(derive(&h, passphrase, key, et));
	int rc = crypto_secretstream_xchacha20poly1305_init_pull(&p->stream, h.stream, key);
	sodium_memzero(key, sizeof key);
	if (rc != 0)
		return rv_fail(et, RV_E_CORRUPT, "%s: damaged; " NEXT_STEP, p->path);
	RV_TRY(pull_check(p, et));
	return decrypt_pieces(p, et);
}

static enum rv_err pass(const char *from, const char *to, const char *passphrase,
						enum rv_err (*work)(struct passage *, const char *, struct rv_errtext *),
						struct rv_errtext *et) {
	struct passage *p = calloc(1, sizeof *p);
	if (p == NULL || sodium_init() < 0) {
		free(p);
		return rv_fail(et, RV_E_NOMEM, "no memory for the passphrase");
	}
	p->path = from;
	p->from = open(from, O_RDONLY | O_CLOEXEC);
	enum rv_err e = p->from >= 0 ? RV_OK : rv_fail_errno(et, errno, "%s: cannot be opened", from);
	if (e == RV_OK)
		e = rv_file_writer_begin(&p->to, to, SECRET_MODE, et);
	if (e == RV_OK)
		e = rv_file_writer_end(&p->to, work(p, passphrase, et), et);
	if (p->from >= 0)
		(void)close(p->from);
	sodium_memzero(p, sizeof *p);
	free(p);
	return e;
}

bool backup_is_encrypted(const char *path) {
	char begin[MAGIC_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is = fd >= 0 && rv_read_at(fd, begin, sizeof begin, 0) == (ssize_t)sizeof begin &&
			  memcmp(begin, magic, sizeof magic) == 0;
	if (fd >= 0)
		(void)close(fd);
	return is;
}

enum rv_err backup_encrypt(const char *from, const char *to, const char *passphrase, struct rv_errtext *et) {
	return pass(from, to, passphrase, encrypt_opened, et);
}

enum rv_err backup_decrypt(const char *from, const char *to, const char *passphrase, struct rv_errtext *et) {
	return pass(from, to, passphrase, decrypt_opened, et);
}
