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

/* Writes "0 (behind), 2 (absent)", and ", ..." where there is no room for more. `absent` and
 * `behind` may be NULL. */
static void list_members(const struct service *s, const uint64_t *set, const uint64_t *absent, const uint64_t *behind,
						 char out[static MEMBERS_BYTES]) {
	enum { ONE_BYTES = 32 };
	size_t n = 0;
	out[0] = '\0';
	for (int k = 0; k < core_here(s->core); k++) {
		uint32_t slot = core_nth(s->core, k);
		if (!set_has(set, slot))
			continue;
		if (n + ONE_BYTES > MEMBERS_BYTES) {
			(void)snprintf(out + n, MEMBERS_BYTES - n, ", ...");
			return;
		}
		n += (size_t)snprintf(out + n, MEMBERS_BYTES - n, "%s%u%s", n > 0 ? ", " : "", core_number(s->core, slot),
							  absent != NULL && set_has(absent, slot)   ? " (absent)"
							  : behind != NULL && set_has(behind, slot) ? " (behind)"
																		: "");
	}
}

/* Logs that the run is complete: members that come late have an older state, which is no fault. */
static void tell_over(struct service *s, const struct core_kept *kept) {
	char here[MEMBERS_BYTES], holders[MEMBERS_BYTES];
	uint64_t behind[CORE_HERE_WORDS], may_hold[CORE_HERE_WORDS];
	const int words = core_words(s->core);
	set_clear(behind, words);
	for (int k = 0; k < core_here(s->core); k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		if (v.alive && v.last->round < kept->round)
			set_add(behind, v.slot);
	}
	set_copy(may_hold, kept->absent, words);
	set_join(may_hold, kept->behind, words);
	list_members(s, behind, NULL, NULL, here);
	list_members(s, may_hold, NULL, NULL, holders);
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
	const bool any_absent = !set_is_empty(kept.absent, core_words(s->core));
	const bool any_behind = !set_is_empty(kept.behind, core_words(s->core));
	list_members(s, kept.last_held, kept.absent, kept.behind, who);
	service_tell(s, RV_ERROR, kept.state == CORE_STATE_LOST ? "state_lost" : "state_absent",
				 "the run waits at round %" PRIu64 ": %s; held last by members %s", round, text, who);
	service_rollback_command(s, &kept, s->cfg.dir, command, sizeof command);
	if (kept.ahead)
		tell_old_copy(s, &kept, command);
	else if (command[0] != '\0')
		service_tell_operator(s, RV_WARN, "rollback_possible", command, "%s",
							  any_absent   ? "start one of them with its directory, or give up rounds: a rollback"
							  : any_behind ? "wait until they have caught up, or give up rounds: a rollback"
										   : "only a rollback, which gives up rounds, lets the run continue");
	else
		service_tell(s, RV_WARN, "rollback_possible",
					 "start one of them with its directory; no present disk has an earlier round");
}

void service_describe_rollback(const struct service *s, const struct service_rolled_back *r,
							   char text[SERVICE_ROLLBACK_BYTES]) {
	const struct document *d = core_document(s->core);
	int n = snprintf(text, SERVICE_ROLLBACK_BYTES,
					 "the run is back at the state of round %" PRIu64 " (term %" PRIu64 "): %" PRIu64
					 " committed rounds were given up, %" PRIu64 " tokens of training with them",
					 d->round, d->term, r->from_round - d->round, r->tokens);
	if (n > 0 && n < SERVICE_ROLLBACK_BYTES && r->unproven)
		(void)snprintf(text + n, SERVICE_ROLLBACK_BYTES - (size_t)n,
					   "\nno present member has proven the state of round %" PRIu64
					   ": if no disk reaches it, the run stands still. Workers set their later rounds aside, in "
					   "given-up-E of their directories (their logs name them): `rivulet checkpoint list` reads it",
					   d->round);
}
