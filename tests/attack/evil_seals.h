/* evil_seals.h: see evil.h, `equivocates`, `false_seal` and `changes`. */
#ifndef RV_TESTS_ATTACK_EVIL_SEALS_H
#define RV_TESTS_ATTACK_EVIL_SEALS_H

#include "net/reduce/reduce.h"

/* Changes what `r` is about to send to the peer at roster index `to`, where RIVULET_EVIL says so.
 * m->data then points to memory that is valid until the next call. */
void evil_seals(struct reduce *r, int to, struct reduce_msg *m);

#endif
