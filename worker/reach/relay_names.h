/* relay_names.h: the numeric addresses of relays that the document names by host name. Names are
 * looked up by a thread of the C library: nothing here waits. For worker/reach, and for a worker
 * that has no station yet. */
#ifndef RV_WORKER_REACH_RELAY_NAMES_H
#define RV_WORKER_REACH_RELAY_NAMES_H

#include "worker/reach/reach_core.h"

enum name_state { NAME_SOUGHT, NAME_FOUND, NAME_FAILED };

struct relay_names;
struct relay_names *relay_names_new(void); /* NULL: no memory */
/* Frees it, but for a lookup that is still under way: its thread writes to that. NULL is fine. */
void relay_names_free(struct relay_names *n);
/* Asks for the addresses of a host name; asked again until it is not NAME_SOUGHT. FOUND:
 * at[family], host "" where the name has none of that family; *first: the family that the system
 * prefers. FAILED: *why, which is asked anew after a second. An answer is good for a minute. */
enum name_state relay_names_find(struct relay_names *n, int64_t now_us, const char *host,
								 struct address at[REACH_FAMILIES], enum reach_family *first, const char **why);
/* Returns true while a lookup is under way: it is to be asked for its end. */
bool relay_names_busy(const struct relay_names *n);

#endif
