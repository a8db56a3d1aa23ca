/* progress.h: how much training a participant's theta_local contains (participant.h). The
 * participant alone counts; all others hold copies. */
#ifndef RV_TRAIN_PARTICIPANT_PROGRESS_H
#define RV_TRAIN_PARTICIPANT_PROGRESS_H

#include <stdint.h>

struct participant_progress {
	uint64_t steps_done, tokens;  /* in the contribution to the round of the shared state */
	uint64_t ahead, ahead_tokens; /* steps and tokens of the next one */
	/* Sequences of the contribution: numbers [first, first + sequences) of the member's stream
	 * (train/text/reading.h), those of refused batches included; the next one's follow. */
	uint64_t first, sequences, ahead_sequences;
};

#endif
