/* not_held.c: the log for the case that no present member has the state of the run's round, with
 * the remedy. News are short: a few lines. */
#include "coordinator/service/internal.h"

#include <inttypes.h>

enum { MEMBERS_BYTES = 96 };

/* Returns true if the round is worth a rollback: any worker has round 0, from which nothing is
 * saved. */
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

/* Writes "0 (behind), 2 (absent)". */
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

/* Logs that the run is complete: members that come late have an older state, which is no fault. */
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
				 "the run is complete, and nothing is lost: members that are present (%s) have an older state than "
				 "that of round %" PRIu64,
				 here, kept->round);
	service_tell(s, RV_INFO, "complete",
				 "to give them the final weights start one that has them (member %s) with its directory; else stop it, "
				 "and this coordinator",
				 holders);
}

/* Logs that the store is an old copy. A rollback would be dangerous: the rounds that workers are
 * ahead by may exist only there. */
static void tell_old_copy(struct service *s, const struct core_kept *kept, const char *command) {
	service_tell(s, RV_WARN, "old_copy",
				 "workers are ahead of this coordinator, whose store must be an old copy: stop it, and serve the "
				 "newest store that there is");
	if (command[0] != '\0') {
		service_tell_operator(s, RV_WARN, "rollback_possible", command,
							  "or the operator gives up what was trained since: a rollback");
		return;
	}
	service_tell(
		s, RV_WARN, "next_step",
		"a rollback to round %" PRIu64
		" would leave nothing to continue from, unless a disk reaches back that far: no present member has proven "
		"it",
		kept->round);
	service_tell(s, RV_WARN, "next_step",
				 "without a newer store: `rivulet export WORKER_DIR --out hf` exports a worker's weights; a "
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
				 "the run waits at round %" PRIu64 ": %s; held last by members %s", round, text, who);
	service_rollback_command(s, &kept, s->cfg.dir, command, sizeof command);
	if (kept.ahead)
		tell_old_copy(s, &kept, command);
	else if (command[0] != '\0')
		service_tell_operator(s, RV_WARN, "rollback_possible", command, "%s",
							  kept.absent != 0   ? "start one of them with its directory, or give up rounds: a rollback"
							  : kept.behind != 0 ? "wait until they have caught up, or give up rounds: a rollback"
												 : "only a rollback, which gives up rounds, lets the run continue");
	else
		service_tell(s, RV_WARN, "rollback_possible",
					 "start one of them with its directory; no present disk has an earlier round");
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
					   "\nno present member has proven round %" PRIu64
					   ": if no disk reaches it, the run stands still. Workers set their later rounds aside, in "
					   "given-up-E of their directories (their logs name them): `rivulet checkpoint list` reads it",
					   d->round);
}
