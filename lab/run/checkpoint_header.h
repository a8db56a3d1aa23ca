/* checkpoint_header.h: the first bytes of a lab run's checkpoint: its run, and its progress.
 *
 * Little-endian: "rivuletL", u32 version, method (16 bytes, NUL-padded), u32 workers, u32 threads,
 * run hash, hash of the configuration, identity of the data, u64 rounds done, tokens done, bytes
 * sent, steps of all replicas, BLAKE2b-256 of everything before. Every version begins with the same
 * name and version. */
#ifndef RV_LAB_CHECKPOINT_HEADER_H
#define RV_LAB_CHECKPOINT_HEADER_H

#include "base/bytes.h"
#include "lab/run/lab_run.h"

enum {
	CHECKPOINT_VERSION = 1,
	CHECKPOINT_METHOD_BYTES = 16,
	CHECKPOINT_HEADER_BYTES = 8 + 4 + CHECKPOINT_METHOD_BYTES + 4 + 4 + 3 * RV_HASH_BYTES + 4 * 8 + RV_HASH_BYTES
};

struct checkpoint_header {
	char method[CHECKPOINT_METHOD_BYTES]; /* NUL-padded */
	uint32_t workers, threads;
	struct rv_hash run_hash; /* as given with --run-hash, or that of the configuration */
	struct rv_hash config;   /* of the run's configuration, backend and instruction set */
	struct rv_hash data;     /* dataset_identity */
	uint64_t rounds_done, tokens_done, bytes_sent, steps_done;
};

/* Returns true if an option of train makes the hashes of the two configurations differ. false: it
 * is not hashed, or has the same effect in both (step-ms without speeds). */
bool checkpoint_header_tells_apart(const char *option, const struct lab_config *a, const struct lab_config *b);

/* Returns the header of a run as it is now. */
struct checkpoint_header checkpoint_header_of(const struct lab_run *r);
void checkpoint_header_write(const struct checkpoint_header *h, struct rv_writer *w);
/* Reads the header of a file. RV_E_NOTFOUND, RV_E_IO; RV_E_CORRUPT: no checkpoint, cut short or
 * damaged; RV_E_UNSUPPORTED: whole, but of another version. */
enum rv_err checkpoint_header_read(const char *path, struct checkpoint_header *h, struct rv_errtext *et);
/* Compares a file's header with this run's, whatever their progress. RV_E_PROTOCOL names the
 * difference: resuming with it would silently be another run. */
enum rv_err checkpoint_header_check(const struct checkpoint_header *file, const struct checkpoint_header *run,
									struct rv_errtext *et);

#endif
