/* dispute_lists.h: what a participant shows when votes differ, and whether it is what it voted for
 * and what owners have signed. Shared by disputes*.c. */
#ifndef RV_COORDINATOR_CORE_DISPUTE_LISTS_H
#define RV_COORDINATOR_CORE_DISPUTE_LISTS_H

#include "coordinator/core/state.h"

/* Participants that own all chunks: those of a place's row. */
struct core_list_owners {
	int row, first, n; /* first: place of the first one */
};
struct core_list_owners core_list_owners_of(const struct core *c, int place);
/* Returns the index among them of a chunk's owner. */
int core_list_owner(const struct core *c, const struct core_list_owners *o, uint32_t chunk);
/* Returns the scope of the seals of a row's owners in this attempt. */
struct seal_scope core_row_scope(const struct core *c, const struct core_list_owners *o);
/* Returns the seal of a member in what is shown; NULL: it has none of that kind. */
const struct seal *core_shown_seal(const struct evidence *e, uint32_t member, const struct seal_scope *scope);
/* Returns true if the leaves make what the participant voted for. */
bool core_is_its_vote(const struct core *c, int place, const struct evidence *e);
/* Returns true if each owner of the participant's row has sealed these leaves; keeps the seals, by
 * index in the row. */
bool core_are_sealed(const struct core *c, int place, const struct evidence *e, struct seal seals[NET_MAX_ROW]);

#endif
