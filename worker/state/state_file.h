/* state_file.h: a snapshot or a log entry that is open for reading, piece by piece, for donors,
 * recovery and `rivulet checkpoint verify`. Memory: the manifest and the index, about 40 bytes per
 * 256 KiB.
 *
 * An open file stays readable when retention removes its name. Functions block on the disk; one
 * thread at a time. */
#ifndef RV_WORKER_STATE_STATE_FILE_H
#define RV_WORKER_STATE_STATE_FILE_H

#include "worker/state/blob.h"
#include "worker/state/state_format.h"

struct state_file;

/* Opens a file; checks header, index and manifest against the hash in the header. Borrows `c`.
 * RV_E_NOTFOUND; RV_E_CORRUPT (damaged, cut short, of another run or model); RV_E_UNSUPPORTED (of
 * another version); RV_E_IO, RV_E_NOMEM. The text does not name the file. */
enum rv_err state_file_open(const struct global_config *c, enum state_kind kind, const char *path,
							struct state_file **out, struct rv_errtext *et);
/* Open a descriptor, or the bytes of a snapshot in memory, which are taken over whatever is
 * returned. Faults of state_file_open. */
enum rv_err state_file_of(const struct global_config *c, enum state_kind kind, int fd, struct state_file **out,
						  struct rv_errtext *et);
enum rv_err state_file_in_memory(const struct global_config *c, struct blob *bytes, struct state_file **out,
								 struct rv_errtext *et);
void state_file_free(struct state_file *f); /* NULL is fine */

const struct state_id *state_file_id(const struct state_file *f);      /* LOG: without a chain */
uint32_t state_file_attempt(const struct state_file *f);               /* LOG */
struct contribution_form state_file_form(const struct state_file *f);  /* LOG: state_log_info.form */
uint64_t state_file_bytes(const struct state_file *f);                 /* on disk */
const struct rv_hash *state_file_manifest(const struct state_file *f); /* state_manifest_hashes() of them */

/* Returns how piece i is stored; reads its stored bytes into `out` (at most STATE_PIECE_MAX_BYTES).
 * Not checked: the receiver finds out if a donor's copy is damaged. RV_E_IO, RV_E_CORRUPT
 * (truncated meanwhile). */
struct state_stored state_file_stored(const struct state_file *f, uint32_t i);
enum rv_err state_file_read_stored(struct state_file *f, uint32_t i, void *out, struct rv_errtext *et);
/* Reads the piece with that chunk of a log entry into `out` (STATE_PIECE_MAX_BYTES are enough),
 * unpacked and checked, and sets *chunk to where that begins in it. RV_E_CORRUPT, RV_E_IO. */
enum rv_err state_file_read_chunk(struct state_file *f, uint32_t number, uint8_t *out, const uint8_t **chunk,
								  struct rv_errtext *et);

/* Checks every piece (about 1 GB/s). RV_E_CORRUPT, RV_E_IO, RV_E_NOMEM. */
enum rv_err state_file_verify(struct state_file *f, struct rv_errtext *et);
/* The same, with each piece of it; ends at the first fault of fn. NULL: none. */
typedef enum rv_err state_piece_fn(void *ctx, uint32_t i, const void *piece, size_t bytes, struct rv_errtext *et);
enum rv_err state_file_each(struct state_file *f, state_piece_fn *fn, void *ctx, struct rv_errtext *et);
/* Loads a snapshot over *into (same configuration): theta, states, round, chain. Verify it before:
 * a fault leaves theta and states that are neither the old ones nor the new ones, and round and
 * chain as they were. RV_E_CORRUPT, RV_E_IO. */
enum rv_err state_file_load_snapshot(struct state_file *f, struct global_state *into, struct rv_errtext *et);
/* Loads and checks the reduced bytes of a log entry. *payload: one reference. RV_E_CORRUPT,
 * RV_E_IO, RV_E_NOMEM. */
enum rv_err state_file_load_log(struct state_file *f, struct blob **payload, struct rv_errtext *et);

#endif
