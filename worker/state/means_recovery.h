/* means_recovery.h: what encoding the means of earlier rounds lost, rebuilt from a worker's files
 * when its process starts (outer/mean_residual.h).
 *
 * Before a worker votes for the result of an attempt it stores what its encodings left, in the file
 * means-S.rvm, and then the log entry (store_job.h). S = round mod 2P, with P fragments: a round
 * and the one before it that exchanged the same fragment have different files, and the third one
 * replaces the first. A file counts only if the log entry of its round is there and of the same
 * attempt: then this process's vote is what the file belongs to. Others are lost.
 *
 * No I/O of its own: the state store and the simulator run the same code. */
#ifndef RV_WORKER_STATE_MEANS_RECOVERY_H
#define RV_WORKER_STATE_MEANS_RECOVERY_H

#include "outer/mean_residual.h"
#include "worker/state/blob.h"

/* Returns the number of the file for `round`: S. */
uint64_t means_file_of(const struct global_config *g, uint64_t round);

/* The directory. */
struct means_files {
	void *ctx;
	/* Sets *attempt to that of the log entry of `round`. Returns false if there is none. */
	bool (*log_attempt)(void *ctx, uint64_t round, uint32_t *attempt);
	/* Returns the bytes of mean_residual_save() in the file for `round`, one reference; NULL: there
	 * is none, or it is damaged and was named and set aside. */
	struct blob *(*load)(void *ctx, uint64_t round);
	/* Names the file and sets it aside: it was loaded, and is no residual of this run. */
	void (*refuse)(void *ctx, uint64_t round, const struct rv_errtext *text);
};

/* Fills *m, just initialized, for a process whose shared state is that of `round`: the residual of
 * every fragment's last committed round, and what the vote for `round` left, if there is one. */
void means_recover(const struct means_files *files, const struct global_config *g, uint64_t round,
				   struct mean_residual *m);

#endif
