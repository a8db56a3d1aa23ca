/* text_donor_store.c: see text_donor_store.h. */
#include "worker/text/text_donor_store.h"

#include "base/jobs.h"
#include "train/text/published/file_hash.h"
#include "worker/text/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	USELESS_US = 1000 * 1000, /* a file that is missing or damaged is not looked at for this long */
	SWEEP_US = 10 * 1000 * 1000,
	WHOLE = 4096 /* shards of which it is remembered that they have their hash */
};

/* A shard that had its hash when its file was last changed. To hash it takes as long as to read all
 * of it, and members ask for other shards each time: for a few bytes one could keep a disk busy. */
struct whole {
	uint64_t file;
	uint64_t inode, changed_ns; /* changed_ns 0: there is none here */
};

/* A file that was checked. */
struct checked {
	bool used;
	uint64_t file;
	int fd; /* negative: missing, or damaged */
	int64_t useless_until_us;
	uint64_t clock; /* when it was last used */
};

struct kept_piece {
	uint8_t *data; /* NULL: none */
	bool valid;
	uint64_t file, clock;
	uint32_t index, bytes;
};

struct text_donor_store {
	char *dir;
	struct manifest manifest;
	struct jobs *jobs;
	struct {
		struct job job;
		bool runs;
		struct text_file file;
		int fd;
	} check;                   /* one at a time */
	struct whole whole[WHOLE]; /* by number mod WHOLE; of its thread only */
	bool is_idle;
	int64_t now_us; /* of the latest call */
	int64_t swept_us;
	uint64_t clock;
	struct checked files[TEXT_DONOR_STORE_FILES];
	struct kept_piece pieces[TEXT_DONOR_STORE_PIECES];
};

/* Returns false if the text has no file of that number. */
static bool file_of(const struct text_donor_store *s, uint64_t id, struct text_file *f) {
	*f = text_file_of(id);
	if (text_file_id(f) != id || f->kind > TEXT_PAGE)
		return false;
	if (f->kind == TEXT_SHARD)
		return f->level == 0 && f->i < (uint64_t)s->manifest.n_shards;
	const struct index_shape shape = index_shape_of(&s->manifest);
	return f->level < shape.levels && f->i < shape.n[f->level];
}

static void path_of(const struct text_donor_store *s, const struct text_file *f, char path[static PATH_MAX]) {
	char name[32];
	text_file_name(f, name);
	(void)snprintf(path, PATH_MAX, "%s/%s", s->dir, name);
}

/* ---- the store's thread ---- */

/* Sets *out to what says that the file is the same as before; returns false, and sets it to none,
 * if that is not known. */
static bool mark_of(const struct text_file *f, int fd, struct whole *out) {
	struct stat st;
	*out = (struct whole){.changed_ns = 0};
	if (fstat(fd, &st) != 0)
		return false;
	*out = (struct whole){.file = text_file_id(f),
						  .inode = (uint64_t)st.st_ino,
						  .changed_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec};
	return true;
}

static enum rv_err check_open_file(struct text_donor_store *s, const struct text_file *f, int fd, const char *path) {
	struct index_page page;
	struct rv_hash expected, got;
	if (f->kind == TEXT_PAGE)
		return index_page_read(s->dir, &s->manifest, f->level, f->i, &page, NULL);
	struct whole *place = &s->whole[f->i % WHOLE], now;
	if (mark_of(f, fd, &now) && memcmp(place, &now, sizeof now) == 0)
		return RV_OK;
	RV_TRY(index_shard_hash(s->dir, &s->manifest, f->i, &expected, NULL));
	RV_TRY(file_hash_open(fd, path, text_file_bytes(&s->manifest, f), &got, NULL));
	if (!rv_hash_equal(&got, &expected))
		return RV_E_CORRUPT;
	*place = now;
	return RV_OK;
}

static void run_check(struct job *j) {
	struct text_donor_store *s = JOB_OWNER(j, struct text_donor_store, check.job);
	char path[PATH_MAX];
	path_of(s, &s->check.file, path);
	s->check.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (s->check.fd >= 0 && check_open_file(s, &s->check.file, s->check.fd, path) != RV_OK) {
		(void)close(s->check.fd);
		s->check.fd = -1;
	}
}

/* ---- open files ---- */

static void forget_pieces(struct text_donor_store *s, uint64_t file) {
	for (int i = 0; i < TEXT_DONOR_STORE_PIECES; i++)
		if (s->pieces[i].file == file)
			s->pieces[i].valid = false;
}

static void close_file(struct text_donor_store *s, struct checked *c) {
	if (!c->used)
		return;
	if (c->fd >= 0)
		(void)close(c->fd);
	c->used = false;
	forget_pieces(s, c->file);
}

/* Closes a file that was removed: its room on the disk is the cache's. */
static void close_removed(struct text_donor_store *s, struct checked *c) {
	struct stat st;
	if (c->used && c->fd >= 0 && (fstat(c->fd, &st) != 0 || st.st_nlink == 0))
		close_file(s, c);
}

static struct checked *find(struct text_donor_store *s, uint64_t file) {
	for (int i = 0; i < TEXT_DONOR_STORE_FILES; i++)
		if (s->files[i].used && s->files[i].file == file)
			return &s->files[i];
	return NULL;
}

static struct checked *oldest(struct text_donor_store *s) {
	struct checked *c = &s->files[0];
	for (int i = 0; i < TEXT_DONOR_STORE_FILES; i++) {
		if (!s->files[i].used)
			return &s->files[i];
		if (s->files[i].clock < c->clock)
			c = &s->files[i];
	}
	return c;
}

static void take_check(struct job *j) {
	struct text_donor_store *s = JOB_OWNER(j, struct text_donor_store, check.job);
	struct checked *c = oldest(s);
	close_file(s, c);
	*c = (struct checked){.used = true,
						  .file = text_file_id(&s->check.file),
						  .fd = s->check.fd,
						  .useless_until_us = s->now_us + USELESS_US,
						  .clock = ++s->clock};
	s->check.runs = false;
}

static void drop_check(struct job *j) {
	const struct text_donor_store *s = JOB_OWNER(j, struct text_donor_store, check.job);
	if (s->check.fd >= 0)
		(void)close(s->check.fd);
}

static bool is_known(const struct text_donor_store *s, const struct checked *c) {
	return c != NULL && (c->fd >= 0 || s->now_us < c->useless_until_us);
}

/* ---- what the donor asks for ---- */

static bool may_look(void *ctx, int64_t now_us, const struct frame_fetch *what) {
	struct text_donor_store *s = ctx;
	struct text_file f;
	s->now_us = now_us;
	s->is_idle = false;
	struct checked *c = find(s, what->round);
	if (c != NULL)
		close_removed(s, c);
	if (c != NULL && !c->used)
		c = NULL;
	if (!file_of(s, what->round, &f) || is_known(s, c))
		return true;
	if (s->check.runs)
		return false;
	if (c != NULL)
		close_file(s, c);
	s->check.runs = true;
	s->check.file = f;
	s->check.fd = -1;
	jobs_post(s->jobs, &s->check.job);
	return false;
}

static int64_t ready_us(void *ctx) {
	(void)ctx;
	return INT64_MIN; /* the thread wakes the loop */
}

static struct kept_piece *place_for_piece(struct text_donor_store *s, uint64_t file, uint32_t index) {
	struct kept_piece *old = &s->pieces[0];
	for (int i = 0; i < TEXT_DONOR_STORE_PIECES; i++) {
		struct kept_piece *p = &s->pieces[i];
		if (p->valid && p->file == file && p->index == index)
			return p;
		if (p->clock < old->clock)
			old = p;
	}
	old->valid = false;
	return old;
}

/* Returns the piece from memory, or reads it; NULL: there is none, or no memory. */
static struct kept_piece *piece_of(struct text_donor_store *s, const struct checked *c, uint64_t size, uint32_t index) {
	const uint64_t at = (uint64_t)index * NET_MAX_PIECE_BYTES;
	struct kept_piece *p = at < size ? place_for_piece(s, c->file, index) : NULL;
	if (p == NULL)
		return NULL;
	p->clock = ++s->clock;
	if (p->valid)
		return p;
	if (p->data == NULL && (p->data = malloc(NET_MAX_PIECE_BYTES)) == NULL)
		return NULL;
	p->file = c->file;
	p->index = index;
	p->bytes = (uint32_t)(size - at < NET_MAX_PIECE_BYTES ? size - at : NET_MAX_PIECE_BYTES);
	p->valid = pread(c->fd, p->data, p->bytes, (off_t)at) == (ssize_t)p->bytes;
	return p->valid ? p : NULL;
}

static bool find_piece(void *ctx, int64_t now_us, struct frame_piece *out) {
	struct text_donor_store *s = ctx;
	struct text_file f;
	struct checked *c = find(s, out->of.round);
	s->now_us = now_us;
	if (c == NULL || c->fd < 0 || !file_of(s, out->of.round, &f))
		return false;
	c->clock = ++s->clock;
	const struct kept_piece *p = piece_of(s, c, text_file_bytes(&s->manifest, &f), out->of.index);
	if (p == NULL)
		return false;
	out->total = p->bytes;
	out->data = p->data;
	return true;
}

/* Frees the pieces while no member asks. */
static void idle(void *ctx) {
	struct text_donor_store *s = ctx;
	for (int i = 0; !s->is_idle && i < TEXT_DONOR_STORE_PIECES; i++) {
		free(s->pieces[i].data);
		s->pieces[i] = (struct kept_piece){0};
	}
	s->is_idle = true;
}

static bool holds(void *ctx, uint64_t file) {
	const struct text_donor_store *s = ctx;
	struct text_file f;
	char path[PATH_MAX];
	if (!file_of(s, file, &f))
		return false;
	path_of(s, &f, path);
	return access(path, R_OK) == 0;
}

struct text_donor_source text_donor_store_source(struct text_donor_store *s) {
	return (struct text_donor_source){
		.pieces = {.ctx = s, .may_look = may_look, .ready_us = ready_us, .find = find_piece, .idle = idle},
		.holds = holds,
		.ctx = s};
}

/* ---- of a worker that has none ---- */

static bool may_look_nowhere(void *ctx, int64_t now_us, const struct frame_fetch *what) {
	(void)ctx;
	(void)now_us;
	(void)what;
	return true;
}

static bool find_nothing(void *ctx, int64_t now_us, struct frame_piece *out) {
	(void)ctx;
	(void)now_us;
	(void)out;
	return false;
}

static void idle_nowhere(void *ctx) {
	(void)ctx;
}

static bool holds_nothing(void *ctx, uint64_t file) {
	(void)ctx;
	(void)file;
	return false;
}

struct text_donor_source text_donor_store_empty(void) {
	return (struct text_donor_source){
		.pieces = {.may_look = may_look_nowhere, .ready_us = ready_us, .find = find_nothing, .idle = idle_nowhere},
		.holds = holds_nothing};
}

/* ---- life ---- */

enum rv_err text_donor_store_open(const char *dir, const struct manifest *manifest, void (*wake)(void *ctx), void *ctx,
								  struct text_donor_store **out, struct rv_errtext *et) {
	struct text_donor_store *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s || !(s->dir = strdup(dir))) {
		free(s);
		return rv_fail(et, RV_E_NOMEM, "%s: no memory to give text to others", dir);
	}
	s->manifest = *manifest;
	s->check.job = (struct job){.run = run_check, .done = take_check, .dropped = drop_check};
	const enum rv_err e = jobs_new("text donor", wake, ctx, &s->jobs, et);
	if (e == RV_OK)
		*out = s;
	else
		text_donor_store_close(s);
	return e;
}

void text_donor_store_reap(struct text_donor_store *s, int64_t now_us) {
	s->now_us = now_us;
	jobs_reap(s->jobs);
	if (now_us - s->swept_us < SWEEP_US)
		return;
	s->swept_us = now_us;
	for (int i = 0; i < TEXT_DONOR_STORE_FILES; i++)
		close_removed(s, &s->files[i]);
}

void text_donor_store_close(struct text_donor_store *s) {
	if (!s)
		return;
	jobs_free(s->jobs);
	idle(s);
	for (int i = 0; i < TEXT_DONOR_STORE_FILES; i++)
		close_file(s, &s->files[i]);
	free(s->dir);
	free(s);
}
