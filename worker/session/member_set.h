/* member_set.h: a set of members as people read it. */
#ifndef RV_WORKER_SESSION_MEMBER_SET_H
#define RV_WORKER_SESSION_MEMBER_SET_H

#include <stdint.h>

enum { MEMBER_SET_TEXT_BYTES = 320 }; /* all 64 of them */

/* Bit i is member i: "member 2", "members 0, 2 and 5"; "nobody" of none. */
void member_set_text(uint64_t set, char out[static MEMBER_SET_TEXT_BYTES]);

#endif
