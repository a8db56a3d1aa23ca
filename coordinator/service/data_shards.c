/* data_shards.c: reports once that there are more workers than the text has parts. Decides
 * nothing. */
#include "coordinator/service/internal.h"

#include <inttypes.h>

void service_watch_shards(struct service *s) {
	struct core_member_view views[NET_MAX_MEMBERS];
	int n = core_members(s->core, views), alive = 0;
	for (int i = 0; i < n; i++)
		alive += views[i].alive && !views[i].banned;
	if (s->shards_told || alive <= s->run.data_shards)
		return;
	s->shards_told = true;
	service_tell(s, RV_WARN, "shared_text",
				 "%d workers share %" PRId64 " parts of the text: those whose numbers differ by %" PRId64
				 " read the same and train alike; a run with data-shards = %d gives each its own",
				 alive, s->run.data_shards, s->run.data_shards, alive);
}
