/* run_silence.h: the limits that follow from silence-ms, the one setting for how long a run
 * tolerates silence. */
#ifndef RV_BASE_RUN_SILENCE_H
#define RV_BASE_RUN_SILENCE_H

#include "base/run_config.h"

/* Limits in milliseconds. */
struct run_silence {
	int64_t silent;      /* a peer that sends nothing for this long is suspected; rounds stop waiting for it */
	int64_t report;      /* a worker reports to the coordinator at least this often */
	int64_t ping;        /* a peer that has sent nothing for this long sends a PING */
	int64_t withheld;    /* a peer that answers, owes data and delivers none for this long is suspected */
	int64_t gather;      /* after the first accusation, how long others are collected */
	int64_t dead;        /* a member that reports nothing for this long is dead until it reports again */
	int64_t coordinator; /* TCP_USER_TIMEOUT of the connection to the coordinator (RFC 5482) */
};

/* Derives all limits from c->silence_ms. */
struct run_silence run_silence_of(const struct run_config *c);

/* Prints the limits as comment lines ("# ...\n") of a configuration. */
enum { RUN_SILENCE_TEXT_BYTES = 1024 };
void run_silence_print(const struct run_config *c, char out[RUN_SILENCE_TEXT_BYTES]);

#endif
