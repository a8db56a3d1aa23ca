/* not_held.c: what people hear when nobody who is here has the state of the run's round, and what they can do
 * about it. News are short: a few lines. */
#include "coordinator/service/internal.h"

#include <inttypes.h>

enum { MEMBERS_BYTES = 96 };

/* Round 0 anybody has, and it is nothing to go on from. */
static bool is_worth_it(const struct core_kept *kept) {
	return kept->has_best && (!kept->ahead || kept->best_round > 0);
}

bool service_is_over(const struct service *s, const struct core_kept *kept) {
	return core_document(s->core)->phase == RUN_DONE && kept->state == CORE_STATE_ABSENT && !kept->ahead;
}

void service_rollback_command(const struct service *s, const struct core_kept *kept, const char *dir, char *out,
							  size_t cap) {
	bool force = kept->ahead || kept->state == CORE_STATE_ABSENT;
	out[0] = '\0';
	if (is_worth_it(kept) && !service_is_over(s, kept))
		(void)snprintf(out, cap, "rivulet-coordinator rollback --dir %s --to-round %" PRIu64 "%s",
					   dir != NULL ? dir : "DIR", kept->best_round, force ? " --force" : "");
}

/* "0 (behind), 2 (absent)". */
static void list_members(uint64_t set, uint64_t absent, uint64_t behind, char out[static MEMBERS_BYTES]) {
	size_t n = 0;
	out[0] = '\0';
	for (uint32_t i = 0; i < NET_MAX_MEMBERS && n < MEMBERS_BYTES - 16; i++)
		if (set >> i & 1)
			n += (size_t)snprintf(out + n, MEMBERS_BYTES - n, "%s%u%s", n > 0 ? ", " : "", i,
								  absent >> i & 1   ? " (absent)"
								  : behind >> i & 1 ? " (behind)"
													: "");
}

/* All that there was to do is done: whoever comes late has an older state, and that is no fault. */
static void tell_over(struct service *s, const struct core_kept *kept) {
	struct core_member_view views[NET_MAX_MEMBERS];
	char here[MEMBERS_BYTES], holders[MEMBERS_BYTES];
	uint64_t behind = 0;
	int n = core_members(s->core, views);
	for (int i = 0; i < n; i++)
		if (views[i].alive && views[i].last.round < kept->round)
			behind |= UINT64_C(1) << views[i].member;
	list_members(behind, 0, 0, here);
	list_members(kept->absent | kept->behind, 0, 0, holders);
	service_tell(s, RV_INFO, "complete",
				 "the run is complete, and nothing is lost: who is here (member %s) holds an older state than that of "
				 "round %" PRIu64,
				 here, kept->round);
	service_tell(s, RV_INFO, "complete",
				 "to give it the final weights start one who has them (member %s) with its directory; else stop it, "
				 "and this coordinator",
				 holders);
}

/* A rollback is the one thing that must not be done lightly here: what the workers are ahead by may be all there is. */
static void tell_old_copy(struct service *s, const struct core_kept *kept, const char *command) {
	service_tell(s, RV_WARN, "old_copy",
				 "workers are ahead of this coordinator, whose store must be an old copy: stop it, and serve the "
				 "newest store that there is");
	if (command[0] != '\0') {
		service_tell_operator(s, RV_WARN, "rollback_possible", command,
							  "or the operator gives up what was trained since: a rollback");
		return;
	}
	service_tell(s, RV_WARN, "next_step",
				 "a rollback to round %" PRIu64
				 " would leave nothing to go on from, unless a disk reaches back so far: nobody who is here has proven "
				 "it",
				 kept->round);
	service_tell(s, RV_WARN, "next_step",
				 "without a newer store: `rivulet export WORKER_DIR --out hf` makes weights of what a worker has; a "
				 "new run can begin with them (new-run: init-hash)");
}

void service_tell_not_held(struct service *s, uint64_t round, const char *text) {
	struct core_kept kept;
	char who[MEMBERS_BYTES], command[160];
	core_kept(s->core, &kept);
	if (service_is_over(s, &kept)) {
		tell_over(s, &kept);
		return;
	}
	list_members(kept.last_held, kept.absent, kept.behind, who);
	service_tell(s, RV_ERROR, kept.state == CORE_STATE_LOST ? "state_lost" : "state_absent",
				 "the run holds at round %" PRIu64 ": %s; held last by members %s", round, text, who);
	service_rollback_command(s, &kept, s->cfg.dir, command, sizeof command);
	if (kept.ahead)
		tell_old_copy(s, &kept, command);
	else if (command[0] != '\0')
		service_tell_operator(s, RV_WARN, "rollback_possible", command, "%s",
							  kept.absent != 0   ? "start one of them with its directory, or give up rounds: a rollback"
							  : kept.behind != 0 ? "wait until they have what they lack, or give up rounds: a rollback"
												 : "only a rollback, which gives up rounds, goes on from here");
	else
		service_tell(s, RV_WARN, "rollback_possible",
					 "start one of them with its directory; no earlier round is on a disk that is here");
}

void service_describe_rollback(const struct service *s, const struct service_rolled_back *r,
							   char text[SERVICE_ROLLBACK_BYTES]) {
	const struct document *d = core_document(s->core);
	int n = snprintf(text, SERVICE_ROLLBACK_BYTES,
					 "the run is back at round %" PRIu64 " (term %" PRIu64 "): %" PRIu64
					 " committed rounds were given up, %" PRIu64 " tokens of training with them",
					 d->round, d->term, r->from_round - d->round, r->tokens);
	if (n > 0 && n < SERVICE_ROLLBACK_BYTES && r->unproven)
		(void)snprintf(text + n, SERVICE_ROLLBACK_BYTES - (size_t)n,
					   "\nnobody who is here has proven round %" PRIu64
					   ": where no disk reaches it, the run stands still. Workers set aside what they had, in "
					   "given-up-E of their directories (their logs say where): `rivulet checkpoint list` reads it",
					   d->round);
}
