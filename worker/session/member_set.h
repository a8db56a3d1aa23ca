/* member_set.h: members as text. */
#ifndef RV_WORKER_SESSION_MEMBER_SET_H
#define RV_WORKER_SESSION_MEMBER_SET_H

#include <stdint.h>

enum { MEMBER_SET_TEXT_BYTES = 320 }; /* all 64 of them */

/* Writes "member 2" or "members 0, 2 and 5" (bit i is member i); "nobody" for an empty set. */
void member_set_text(uint64_t set, char out[static MEMBER_SET_TEXT_BYTES]);

enum { MEMBER_LIST_TEXT_BYTES = 96 };

/* Does the same for a list of n members; of more than 6 it names 5, "and 27 more". */
void member_list_text(const uint32_t *members, int n, char out[static MEMBER_LIST_TEXT_BYTES]);

#endif
