/* data_shards.c: reports once that there are more workers than the text has parts. Decides
 * nothing. */
#include "coordinator/service/internal.h"

#include <inttypes.h>

void service_watch_shards(struct service *s) {
	int alive = 0;
	if (s->run.data_hash[0])
		return; /* sequences are leased */
	for (int k = 0; k < core_here(s->core) && !s->shards_told; k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		alive += v.alive && !v.banned;
	}
	if (s->shards_told || alive <= s->run.data_shards)
		return;
	s->shards_told = true;
	service_tell(s, RV_WARN, "shared_text",
				 "%d workers share %" PRId64 " parts of the text: those whose numbers differ by %" PRId64
				 " read the same and train alike; a run with data-shards = %d gives each its own",
				 alive, s->run.data_shards, s->run.data_shards, alive);
}
