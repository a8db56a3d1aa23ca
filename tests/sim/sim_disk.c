/* sim_disk.c: a disk. A file is written as base/file.h does it: a temporary one, synced, renamed,
 * then the directory is synced, and only then the writer is told. A process that dies loses its
 * temporary files. A machine that loses power also loses what was renamed or removed since the last
 * sync of the directory: each such name is there or is not, and a new file may be torn. A damaged
 * file is recognised when it is read, by its hash. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { MOMENTS_OF_A_WRITE = 10 }; /* against 1 of a frame: there are many more frames */

static struct sim_file *slot_of(struct sim_disk *d, uint8_t kind, uint64_t round) {
	struct sim_file *unused = NULL;
	for (int i = 0; i < d->n_files; i++) {
		if (d->files[i].kind == kind && d->files[i].round == round)
			return &d->files[i];
		if (d->files[i].kind == 0 && unused == NULL)
			unused = &d->files[i];
	}
	if (unused == NULL) {
		RV_ASSERT(d->n_files < SIM_MAX_FILES);
		unused = &d->files[d->n_files++];
	}
	return unused;
}

static void free_file(struct sim_file *f) {
	free(f->data);
	free(f->before);
	*f = (struct sim_file){0};
}

/* What the directory said when it was last synced is kept until the next time. */
static void keep_before(struct sim_file *f) {
	if (f->unsynced) {
		free(f->data);
	} else {
		f->before = f->data;
		f->n_before = f->n;
		f->before_damaged = f->damaged;
	}
	f->data = NULL;
	f->n = 0;
	f->damaged = false;
	f->unsynced = true;
}

static void rename_into_place(struct sim_disk *d, struct sim_write *w) {
	struct sim_file *f = slot_of(d, w->kind, w->round);
	f->kind = w->kind;
	f->round = w->round;
	keep_before(f);
	f->data = w->data;
	f->n = w->n;
	w->data = NULL;
	w->renamed = true;
}

void disk_sync(struct sim_disk *d) {
	for (int i = 0; i < d->n_files; i++) {
		struct sim_file *f = &d->files[i];
		free(f->before);
		f->before = NULL;
		f->unsynced = false;
		if (f->kind != 0 && f->data == NULL)
			free_file(f);
	}
}

/* ---- writing ---- */

static void free_write(struct sim_write *w) {
	free(w->data);
	free(w);
}

static void file_synced(struct sim_disk *d, struct sim_write *w) {
	w->synced = true;
	w->failed = d->full;
	if (w->kind != 0 && !w->failed)
		rename_into_place(d, w);
}

static void directory_synced(struct sim *s, int host, struct sim_write *w) {
	struct sim_disk *d = &s->workers[host].disk;
	d->writes = w->next;
	if (w->renamed)
		disk_sync(d);
	bool ok = !w->failed;
	disk_done *done = w->done;
	uint64_t tag = w->tag;
	free_write(w);
	if (done != NULL)
		done(s, host, tag, ok);
}

/* Writes take their two steps in the order in which they began. */
static void step(struct sim *s, int host, void *arg) {
	(void)arg;
	struct sim_disk *d = &s->workers[host].disk;
	if (!d->writes->synced)
		file_synced(d, d->writes);
	else
		directory_synced(s, host, d->writes);
}

void disk_write(struct sim *s, int host, enum file_kind kind, uint64_t round, const void *data, size_t n,
				disk_done *done, uint64_t tag) {
	struct sim_disk *d = &s->workers[host].disk;
	struct sim_write *w = sim_alloc(sizeof *w), **last = &d->writes;
	*w = (struct sim_write){
		.kind = (uint8_t)kind, .round = round, .data = sim_alloc(n), .n = n, .done = done, .tag = tag};
	memcpy(w->data, data, n);
	while (*last != NULL)
		last = &(*last)->next;
	*last = w;
	int64_t start = d->busy_until_us > s->now_us ? d->busy_until_us : s->now_us;
	bool slow = sim_chance(s, host, LUCK_DISK, 0.02);
	int64_t takes = (int64_t)(d->slowness * (double)sim_between(s, host, LUCK_DISK, 200, slow ? SIM_S : 20 * SIM_MS));
	d->busy_until_us = start + takes;
	sim_at(s, start + takes / 2, host, s->workers[host].life, step, NULL);
	sim_at(s, d->busy_until_us, host, s->workers[host].life, step, NULL);
	faults_aim(s, host, MOMENTS_OF_A_WRITE, d->busy_until_us - s->now_us);
	static const enum sim_on on[] = {
		[FILE_SNAPSHOT] = ON_SNAPSHOT, [FILE_LOG] = ON_LOG,      [FILE_REPLICA] = ON_REPLICA,
		[FILE_TERM] = ON_TERM,         [FILE_PART] = ON_NOTHING, [FILE_MEANS] = ON_NOTHING};
	faults_on(s, host, on[kind], round, d->busy_until_us - s->now_us);
}

/* ---- reading and removing ---- */

const struct sim_file *disk_find(const struct sim_disk *d, enum file_kind kind, uint64_t round) {
	for (int i = 0; i < d->n_files; i++)
		if (d->files[i].kind == kind && d->files[i].round == round)
			return d->files[i].data == NULL || d->files[i].damaged ? NULL : &d->files[i];
	return NULL;
}

void disk_remove(struct sim_disk *d, enum file_kind kind, uint64_t round) {
	for (int i = 0; i < d->n_files; i++)
		if (d->files[i].data != NULL && d->files[i].kind == kind && d->files[i].round == round)
			keep_before(&d->files[i]);
}

/* ---- faults ---- */

/* The name is as it was, or as it became; a file that was not there before may be torn. */
static void lose_power(struct sim *s, int host, struct sim_file *f) {
	if (!f->unsynced)
		return;
	bool is_new = f->before == NULL && f->data != NULL && f->kind != FILE_TERM;
	if (sim_chance(s, host, LUCK_DISK, 0.5)) {
		free(f->data);
		f->data = f->before;
		f->n = f->n_before;
		f->damaged = f->before_damaged;
		f->before = NULL;
	} else if (is_new && sim_chance(s, host, LUCK_DISK, 0.5)) {
		f->damaged = true;
		s->stats.torn_writes++;
	}
}

void disk_crash(struct sim *s, int host, bool power) {
	struct sim_disk *d = &s->workers[host].disk;
	while (d->writes != NULL) {
		struct sim_write *w = d->writes;
		d->writes = w->next;
		free_write(w);
	}
	d->busy_until_us = 0;
	for (int i = 0; power && i < d->n_files; i++)
		lose_power(s, host, &d->files[i]);
	if (power)
		disk_sync(d);
}

bool disk_adopt(struct sim_disk *d, uint64_t round) {
	struct sim_file *part = NULL;
	for (int i = 0; i < d->n_files; i++)
		if (d->files[i].kind == FILE_PART && d->files[i].round == round && d->files[i].data != NULL)
			part = &d->files[i];
	if (part == NULL)
		return false;
	struct sim_file moved = {.data = part->data, .n = part->n, .damaged = part->damaged};
	part->data = NULL; /* the name goes with the sync below */
	struct sim_file *snapshot = slot_of(d, FILE_SNAPSHOT, round);
	snapshot->kind = FILE_SNAPSHOT;
	snapshot->round = round;
	keep_before(snapshot);
	snapshot->data = moved.data;
	snapshot->n = moved.n;
	snapshot->damaged = moved.damaged;
	disk_sync(d);
	return true;
}

static bool may_rot(const struct sim_file *f) {
	return f->data != NULL && f->kind != FILE_TERM;
}

bool disk_rot(struct sim_disk *d, uint32_t which) {
	int n = 0;
	for (int i = 0; i < d->n_files; i++)
		n += may_rot(&d->files[i]);
	if (n == 0)
		return false;
	int at = (int)(which % (uint32_t)n);
	for (int i = 0; i < d->n_files; i++)
		if (may_rot(&d->files[i]) && at-- == 0)
			d->files[i].damaged = true;
	return true;
}

void disk_wipe(struct sim_disk *d) {
	for (int i = 0; i < d->n_files; i++)
		free_file(&d->files[i]);
	d->n_files = 0;
}

void disk_release(struct sim_disk *d) {
	while (d->writes != NULL) {
		struct sim_write *w = d->writes;
		d->writes = w->next;
		free_write(w);
	}
	disk_wipe(d);
}
