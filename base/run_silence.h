/* run_silence.h: what follows from silence-ms, the one setting that says how long a run bears silence. */
#ifndef RV_BASE_RUN_SILENCE_H
#define RV_BASE_RUN_SILENCE_H

#include "base/run_config.h"

/* Milliseconds. */
struct run_silence {
	int64_t silent;      /* a peer or a member of which nothing arrives for so long is suspected, or not waited for */
	int64_t report;      /* a worker reports to the coordinator at least this often */
	int64_t ping;        /* a peer sends a PING when it has sent nothing for so long */
	int64_t withheld;    /* a peer that answers, owes data and delivers none for so long is suspected */
	int64_t gather;      /* after the first accusation, how long the others' are collected */
	int64_t dead;        /* a member that reports nothing for so long is dead until it reports again */
	int64_t coordinator; /* TCP_USER_TIMEOUT of the connection to the coordinator (RFC 5482) */
};

/* Derives all of them from c->silence_ms. */
struct run_silence run_silence_of(const struct run_config *c);

/* Prints them as comment lines ("# ...\n") of a configuration. */
enum { RUN_SILENCE_TEXT_BYTES = 1024 };
void run_silence_print(const struct run_config *c, char out[RUN_SILENCE_TEXT_BYTES]);

#endif
