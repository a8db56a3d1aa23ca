/* audits.c: what audits of averages and of training found, for people. */
#include "coordinator/service/internal.h"

#include "base/round_number.h"

#include <inttypes.h>

/* What an auditor did about the average of an owner: "member A DID member B MADE". */
struct auditors_deed {
	enum rv_level level;
	const char *name, *did, *made;
};
static const struct auditors_deed disputed = {RV_WARN, "audit_disputed", " reports that the average which",
											  "made of it is wrong: others check it"};
static const struct auditors_deed false_audit = {
	RV_ERROR, "audit_false", ", as an auditor, reported the opposite of what others found of the average that", "made"};

static void tell_deed(struct service *s, const struct auditors_deed *d, uint64_t round, uint32_t auditor,
					  uint32_t owner) {
	service_tell(s, d->level, d->name, "round %" PRIu64 ": member %u%s member %u %s", round_number(round), auditor,
				 d->did, owner, d->made);
}

static bool tell_score(struct service *s, const struct core_event *ev) {
	switch (ev->type) {
	case CORE_EVENT_DOUBTED:
		service_tell(s, RV_INFO, "training_doubted",
					 "round %" PRIu64 ": member %u measured that the contribution of member %u is worth less than half "
					 "of its own, or not what its steps give: two others look",
					 round_number(ev->round), ev->other, ev->member);
		return true;
	case CORE_EVENT_WORTHLESS:
		service_tell(s, RV_WARN, "training_worthless",
					 "member %u: its contribution to round %" PRIu64
					 " lowers the loss on the text that was leased to it "
					 "by %.3f of what an auditor's own does, and two auditors find it worthless: it is in quarantine",
					 ev->member, round_number(ev->round), (double)(int32_t)ev->other / 1000);
		return true;
	case CORE_EVENT_UNREPEATED:
		service_tell(s, RV_WARN, "training_not_repeated",
					 "member %u: its contribution to round %" PRIu64
					 " is not what its steps give: auditors made them again, from the state that it had committed to, "
					 "and one came out %.3f away (%.2f at most, and its inner state %.2f): it is in quarantine",
					 ev->member, round_number(ev->round), (double)(int32_t)ev->other / 1000, (double)SCORE_REPEAT_LIMIT,
					 (double)SCORE_REPEAT_INNER_LIMIT);
		return true;
	case CORE_EVENT_NO_REPEAT:
		service_tell(
			s, RV_WARN, "training_not_repeatable",
			"member %u: nobody can repeat its last %u rounds, up to %" PRIu64
			": it says that each began from another inner state than the one before ended with, or commits to "
			"none. So it does with --moments int8, a low --max-donate, or if its rounds are cut short; audits only "
			"score it",
			ev->member, ev->other, round_number(ev->round));
		return true;
	case CORE_EVENT_APPEALED:
		service_tell(s, RV_INFO, "appeal", "member %u asks for another look at round %" PRIu64 ": two others score it",
					 ev->member, round_number(ev->round));
		return true;
	case CORE_EVENT_UPHELD:
		service_tell(s, RV_INFO, "appeal_upheld",
					 "member %u is not cleared of what was found of round %" PRIu64 ": two others did not both find it "
					 "worthy, or could not look",
					 ev->member, round_number(ev->round));
		return true;
	case CORE_EVENT_UNRESOLVED:
		service_tell(
			s, RV_WARN, "training_unresolved",
			"nobody could say what the contribution of member %u to round %" PRIu64
			" is worth, within audit-window rounds: if this names one member again and again, it may rest whenever it "
			"is audited",
			ev->member, round_number(ev->round));
		return true;
	case CORE_EVENT_EVADED:
		service_tell(s, RV_WARN, "training_evaded",
					 "member %u: its auditors could not fetch in time what they need of round %" PRIu64
					 " although it exchanged rounds with them meanwhile: %s",
					 ev->member, round_number(ev->round),
					 ev->other > 1 ? "again, so it is in quarantine" : "once more in a row is a strike");
		return true;
	case CORE_EVENT_UNSHOWN:
		service_tell(s, RV_WARN, "sums_unshown",
					 "member %u: it was asked to show what the rows had given it for an average of round %" PRIu64
					 ", and has not, although it took part in rounds meanwhile: %s",
					 ev->member, round_number(ev->round),
					 ev->other > 1 ? "again, so it is in quarantine"
								   : "its disk may have failed; once more within 64 rounds is a strike");
		return true;
	case CORE_EVENT_CLEARED:
		service_tell(s, RV_WARN, "appeal_cleared",
					 "member %u is cleared of what was found of round %" PRIu64 ": two others find its contribution "
					 "worth its place; its strike is taken back",
					 ev->member, round_number(ev->round));
		return true;
	default:
		return false;
	}
}

bool service_tell_audit(struct service *s, const struct core_event *ev) {
	switch (ev->type) {
	case CORE_EVENT_DISPUTED:
		tell_deed(s, &disputed, ev->round, ev->other, ev->member);
		return true;
	case CORE_EVENT_LIED:
		service_tell(s, RV_ERROR, "audit_lied",
					 "round %" PRIu64 ": member %u sent all others an average (chunk %u) that is not that of their "
					 "contributions, as several auditors found: it is banned. Its memory may be bad: `unban %u` takes "
					 "that back%s",
					 round_number(ev->round), ev->member, ev->other, ev->member,
					 s->run.audit_rollback ? "" : "; `rollback` takes the run back to before that round");
		return true;
	case CORE_EVENT_FALSE_AUDIT:
		tell_deed(s, &false_audit, ev->round, ev->member, ev->other);
		return true;
	case CORE_EVENT_TAKEN_BACK:
		service_tell(s, RV_WARN, "audit_rollback",
					 "the run goes back to the state of round %" PRIu64
					 ": the next round is the first that member %u spoiled, or may have spoiled, as auditors could not "
					 "check it",
					 ev->round, ev->member);
		return true;
	default:
		return tell_score(s, ev);
	}
}

json_t *service_audits_json(const struct service *s) {
	const struct core_audit_figures f = core_audits(s->core);
	if (!run_config_is_audited(&s->run))
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "chunks", (json_int_t)s->run.audit_chunks, "window",
					 (json_int_t)s->run.audit_window, "drawn", (json_int_t)f.drawn, "right", (json_int_t)f.right,
					 "wrong", (json_int_t)f.wrong, "unresolved", (json_int_t)f.unresolved, "open", (json_int_t)f.open,
					 "rollback", (int)s->run.audit_rollback);
}

json_t *service_scores_json(const struct service *s) {
	const struct core_score_figures f = core_scores(s->core);
	if (!run_config_is_scored(&s->run))
		return json_null();
	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "share", s->run.audit_training,
					 "window", (json_int_t)s->run.audit_window, "drawn", (json_int_t)f.drawn, "worthy",
					 (json_int_t)f.worthy, "worthless", (json_int_t)f.worthless, "unresolved", (json_int_t)f.unresolved,
					 "evaded", (json_int_t)f.evaded, "open", (json_int_t)f.open, "appeals", (json_int_t)f.appeals,
					 "lifted", (json_int_t)f.lifted, "repeats", (json_int_t)f.repeats);
}

json_t *service_reputation_json(const struct core_reputation *r) {
	static const char *const reasons[] = {[CORE_STRIKE_WITHHELD] = "withheld",
										  [CORE_STRIKE_FALSE_AUDIT] = "false_audit",
										  [CORE_STRIKE_TRAINING] = "training",
										  [CORE_STRIKE_EVADED] = "evaded"};
	return json_pack("{s:I, s:I, s:i, s:o, s:o, s:b}", "rounds", (json_int_t)r->rounds, "audited",
					 (json_int_t)r->audited, "strikes", (int)r->strikes, "reason",
					 r->strikes > 0 ? json_string(reasons[r->reason]) : json_null(), "quarantined_until",
					 r->strikes > 0 ? json_integer((json_int_t)r->quarantined_until) : json_null(), "appealed",
					 r->strikes > 0 && r->appealed);
}

static void score_metrics(const struct service *s, FILE *f) {
	const struct core_score_figures figures = core_scores(s->core);
	(void)fprintf(f,
				  "# HELP rivulet_scores_total Audits of training since this process started, by what they found\n"
				  "# TYPE rivulet_scores_total counter\n"
				  "rivulet_scores_total{found=\"worthy\"} %" PRIu64 "\n"
				  "rivulet_scores_total{found=\"worthless\"} %" PRIu64 "\n"
				  "rivulet_scores_total{found=\"unresolved\"} %" PRIu64 "\n"
				  "rivulet_scores_total{found=\"evaded\"} %" PRIu64 "\n",
				  figures.worthy, figures.worthless, figures.unresolved, figures.evaded);
}

void service_audits_metrics(const struct service *s, FILE *f) {
	const struct core_audit_figures figures = core_audits(s->core);
	if (run_config_is_scored(&s->run))
		score_metrics(s, f);
	if (!run_config_is_audited(&s->run))
		return;
	(void)fprintf(f,
				  "# HELP rivulet_audits_total Audits of averages since this process started, by what they found\n"
				  "# TYPE rivulet_audits_total counter\n"
				  "rivulet_audits_total{found=\"right\"} %" PRIu64 "\n"
				  "rivulet_audits_total{found=\"wrong\"} %" PRIu64 "\n"
				  "rivulet_audits_total{found=\"unresolved\"} %" PRIu64 "\n",
				  figures.right, figures.wrong, figures.unresolved);
}
