/* sim_disk.h: files: in the cache, durable, torn, rotten, lost. */
#ifndef RV_TESTS_SIM_SIM_DISK_H
#define RV_TESTS_SIM_SIM_DISK_H

#include "tests/sim/sim_limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

enum file_kind { FILE_SNAPSHOT = 1, FILE_LOG, FILE_REPLICA, FILE_TERM, FILE_PART, FILE_MEANS /* by means_file_of() */ };
struct sim_file {
	uint8_t kind; /* 0: free */
	uint64_t round;
	uint8_t *data; /* NULL: removed */
	size_t n;
	bool damaged;
	/* What a power cut may bring back: the directory was not synced since. */
	bool unsynced;
	uint8_t *before; /* NULL: there was no such file */
	size_t n_before;
	bool before_damaged;
};
struct sim_write { /* under way, in a temporary file until it is renamed */
	uint8_t kind;  /* 0: forgotten meanwhile */
	bool synced, failed, renamed;
	uint64_t round, tag;
	uint8_t *data;
	size_t n;
	void (*done)(struct sim *s, int host, uint64_t tag, bool ok);
	struct sim_write *next;
};
struct sim_disk {
	struct sim_file files[SIM_MAX_FILES];
	int n_files;              /* slots in use are below */
	struct sim_write *writes; /* oldest first */
	int64_t busy_until_us;
	double slowness;      /* 1: none */
	bool full, read_only; /* writes fail; removals too */
};
/* Writes a file (the data are copied) to a temporary one, syncs it, renames it, syncs the
 * directory; then `done` (or NULL) is called with `tag` in this life: the file is durable, or (!ok)
 * the disk would not take it. */
typedef void disk_done(struct sim *s, int host, uint64_t tag, bool ok);
void disk_write(struct sim *s, int host, enum file_kind kind, uint64_t round, const void *data, size_t n,
				disk_done *done, uint64_t tag);
/* The file as last renamed, or NULL: there is none, or it is damaged, as its hash would say. */
const struct sim_file *disk_find(const struct sim_disk *d, enum file_kind kind, uint64_t round);
void disk_remove(struct sim_disk *d, enum file_kind kind, uint64_t round);
void disk_sync(struct sim_disk *d); /* the directory: what was renamed and removed so far is durable */
/* A fetched snapshot gets its name, durably. False: there is no part of that round. */
bool disk_adopt(struct sim_disk *d, uint64_t round);
/* The process died; with the machine (`power`), what was not synced is there, is not, or is
 * torn. */
void disk_crash(struct sim *s, int host, bool power);
/* Damages the `which`-th file (modulo their number); false when there is none. */
bool disk_rot(struct sim_disk *d, uint32_t which);
void disk_wipe(struct sim_disk *d);
void disk_release(struct sim_disk *d);

#endif
