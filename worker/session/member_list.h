/* member_list.h: members as text. */
#ifndef RV_WORKER_SESSION_MEMBER_LIST_H
#define RV_WORKER_SESSION_MEMBER_LIST_H

#include <stdint.h>

enum { MEMBER_LIST_TEXT_BYTES = 96 };

/* Writes "member 2" or "members 0, 2 and 5"; of more than 6 it names 5, "and 27 more"; "nobody" for
 * none. */
void member_list_text(const uint32_t *members, int n, char out[static MEMBER_LIST_TEXT_BYTES]);

#endif
