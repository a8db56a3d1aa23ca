/* sim_disk.c: a disk: a write takes time, and is whole and durable when it ends. When the process stops before, the
 * file is the old one, the new one, or torn; the reader recognises a torn one by its hash. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static struct sim_file *slot_of(struct sim_disk *d, uint8_t kind, uint64_t round) {
	struct sim_file *unused = NULL;
	for (int i = 0; i < SIM_MAX_FILES; i++) {
		if (d->files[i].kind == kind && d->files[i].round == round)
			return &d->files[i];
		if (d->files[i].kind == 0 && unused == NULL)
			unused = &d->files[i];
	}
	RV_ASSERT(unused != NULL);
	return unused;
}

/* Takes the data of `f`; nothing when it was forgotten while it was being written. */
static void put(struct sim_disk *d, const struct sim_file *f) {
	if (f->kind == 0)
		return;
	struct sim_file *slot = slot_of(d, f->kind, f->round);
	free(slot->data);
	*slot = *f;
}

/* Files are replaced by renaming, so only a file that was not there before can be seen torn. */
static void put_torn(struct sim *s, struct sim_disk *d, struct sim_file *f) {
	s->stats.faults[FAULT_TORN_WRITE]++;
	if (slot_of(d, f->kind, f->round)->kind != 0) {
		free(f->data);
		return;
	}
	f->n = (size_t)sim_between(s, 0, (int64_t)f->n);
	put(d, f);
}

struct finished {
	disk_done *then;
	uint64_t tag;
};

/* Writes end in the order in which they began. */
static void write_ends(struct sim *s, int host, void *arg) {
	struct finished f = *(struct finished *)arg;
	free(arg);
	struct sim_disk *d = &s->workers[host].disk;
	struct sim_write *w = d->writes;
	d->writes = w->next;
	put(d, &w->file);
	free(w);
	if (f.then != NULL)
		f.then(s, host, f.tag);
}

void disk_write(struct sim *s, int host, enum file_kind kind, uint64_t round, const void *data, size_t n,
				disk_done *done, uint64_t tag) {
	struct sim_disk *d = &s->workers[host].disk;
	struct sim_write *w = sim_alloc(sizeof *w);
	w->file = (struct sim_file){.kind = (uint8_t)kind, .round = round, .n = n + RV_HASH_BYTES};
	w->file.data = sim_alloc(w->file.n);
	memcpy(w->file.data, data, n);
	struct rv_hash hash = rv_hash_of(data, n);
	memcpy(w->file.data + n, hash.b, RV_HASH_BYTES);
	struct sim_write **last = &d->writes;
	while (*last != NULL)
		last = &(*last)->next;
	*last = w;
	int64_t start = d->busy_until_us > s->now_us ? d->busy_until_us : s->now_us;
	bool slow = sim_chance(s, 0.02);
	d->busy_until_us = start + sim_between(s, 200, slow ? SIM_S : 20 * SIM_MS);
	struct finished *f = sim_alloc(sizeof *f);
	*f = (struct finished){.then = done, .tag = tag};
	sim_at(s, d->busy_until_us, host, s->workers[host].life, write_ends, f);
	faults_aim(s, host, d->busy_until_us - s->now_us);
}

const struct sim_file *disk_find(const struct sim_disk *d, enum file_kind kind, uint64_t round) {
	for (int i = 0; i < SIM_MAX_FILES; i++) {
		const struct sim_file *f = &d->files[i];
		if (f->kind != kind || f->round != round || f->n < RV_HASH_BYTES)
			continue;
		struct rv_hash hash = rv_hash_of(f->data, f->n - RV_HASH_BYTES);
		return memcmp(hash.b, f->data + f->n - RV_HASH_BYTES, RV_HASH_BYTES) == 0 ? f : NULL;
	}
	return NULL;
}

static void forget(struct sim_file *f, uint64_t round) {
	if ((f->kind != FILE_BASE || f->round <= round) && (f->kind != FILE_LOG || f->round < round))
		return;
	free(f->data);
	*f = (struct sim_file){0};
}

void disk_forget_from(struct sim_disk *d, uint64_t round) {
	for (int i = 0; i < SIM_MAX_FILES; i++)
		forget(&d->files[i], round);
	for (struct sim_write *w = d->writes; w != NULL; w = w->next)
		forget(&w->file, round);
}

void disk_crash(struct sim *s, struct sim_disk *d) {
	while (d->writes != NULL) {
		struct sim_write *w = d->writes;
		d->writes = w->next;
		switch (sim_between(s, 0, 3)) {
		case 0: /* the old one */
			free(w->file.data);
			break;
		case 1:
			put_torn(s, d, &w->file);
			break;
		default: /* just made it */
			put(d, &w->file);
		}
		free(w);
	}
	d->busy_until_us = 0;
}

void disk_release(struct sim_disk *d) {
	while (d->writes != NULL) {
		struct sim_write *w = d->writes;
		d->writes = w->next;
		free(w->file.data);
		free(w);
	}
	for (int i = 0; i < SIM_MAX_FILES; i++)
		free(d->files[i].data);
}
