/* check.c: refuses or warns. */
#include "train/memory/check.h"

#include <stdint.h>

enum rv_err memory_check(const struct memory_request *q, const struct memory_room *room, enum memory_short choice,
						 struct rv_events *ev, struct rv_errtext *et) {
	struct memory_room limit = *room;
	struct rv_errtext what = {0};
	if (choice == MEMORY_SHORT_WARN && !room->host_capped)
		limit.host = SIZE_MAX;
	RV_TRY(memory_fit(q, &limit, et));
	const struct memory_room unswapped = {.device = SIZE_MAX, .host = room->host};
	if (memory_fit(q, &unswapped, &what) != RV_OK)
		rv_event(ev, RV_WARN, "memory_short", RV_FIELDS(rv_field_str("text", what.text)),
				 "training may swap, which is slow, or the kernel may kill it: %s", what.text);
	return RV_OK;
}
