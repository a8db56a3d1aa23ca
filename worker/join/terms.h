/* terms.h: what a run is, needs and does: what a person reads, and agrees to, before their computer
 * joins; and DIR/terms.conf (mode 0600), which keeps it and their answer. */
#ifndef RV_WORKER_JOIN_TERMS_H
#define RV_WORKER_JOIN_TERMS_H

#include "base/hash.h"
#include "base/run_about.h"

#include <stdbool.h>
#include <stdint.h>

/* The needs of a run, on this computer. */
struct terms_needs {
	uint64_t parameters, rounds, tokens_per_round; /* of this worker */
	uint64_t memory_bytes;                         /* host memory at its peak; 0: not known */
	uint64_t state_disk_bytes;                     /* at least, without the text */
	uint64_t text_bytes;       /* most of the run's text that is kept on the disk; 0: none is fetched */
	uint64_t text_least_bytes; /* of these, at least; 0: not known */
	uint64_t state_bytes;      /* fetched at the join */
	uint64_t round_bytes;      /* sent in a round, and received, about */
	bool shows_moments;        /* others may have its optimizer's moments */
	const char *computes;      /* "the processor (2 cores)" */
	const char *coordinator;   /* HOST:PORT */
};

enum { TERMS_BYTES = 4096 };

/* Writes the terms, as lines for people; they name what the operator did not state. */
void terms_text(const struct run_about *about, const struct terms_needs *needs, char out[TERMS_BYTES]);
/* Returns the hash of the run's part: what the operator says and the configuration. Another one has
 * to be agreed to again. */
struct rv_hash terms_hash(const struct run_about *about, const char *config);

/* Reads DIR/terms.conf. *accepted: the hash that was agreed to. Returns false, with *about empty,
 * if there is none, or it is damaged: the question is asked again. */
bool terms_read(const char *dir, struct run_about *about, struct rv_hash *accepted);
/* Keeps them. RV_E_IO, RV_E_FULL, RV_E_RANGE. */
enum rv_err terms_write(const char *dir, const struct run_about *about, const struct rv_hash *accepted,
						struct rv_errtext *et);

#endif
