/* notice.c: logs the coordinator's notices, in the terms of the person who runs this worker, with
 * the one step that helps. */
#include "worker/session/internal.h"

#include "base/round_number.h"

#include "worker/session/member_list.h"

#include <inttypes.h>

static void log_apart(struct session *s, const struct notice *n) {
	char others[MEMBER_LIST_TEXT_BYTES];
	member_list_text(n->others, n->n_others, others);
	rv_event(
		s->events, RV_WARN, "apart",
		RV_FIELDS(rv_field_int("member", s->member.member), rv_field_str("others", others),
				  rv_field_bool("left_out", n->left_out), rv_field_int("until_round", (int64_t)n->until_round)),
		"%s and this worker (member %u) cannot connect to each other; unless one of them has just ended, most likely "
		"both are behind routers: %s. To mend it, make this worker reachable: forward TCP port %u of your router to "
		"this machine and start with "
		"--listen :%u; if the router forwards another port, add --advertise :PORT",
		others, s->member.member,
		n->left_out ? "rounds leave this one out if enough others are ready, and what it trains then is not counted"
					: "rounds go on with both as long as other members reach them, which then send more",
		peers_port(meshlink_peers(s->mesh)), peers_port(meshlink_peers(s->mesh)));
}

static const char *not_counted(uint8_t reason) {
	switch (reason) {
	case NOTICE_UNREACHED:
		return "the others received nothing from it in time. If that repeats, its line or its router is the cause: "
			   "forward the port of --listen to this machine, or allow more with --max-up";
	case NOTICE_DIVERGED:
		return "its weights differ from those of the majority. It fetches them again by itself; if that repeats, test "
			   "this machine's memory and disk";
	default:
		return "its model has another size than the run's. Is it the same release of Rivulet as the others'?";
	}
}

static void log_rests(struct session *s, const struct notice *n) {
	rv_event(s->events, RV_INFO, "rests",
			 RV_FIELDS(rv_field_int("round", (int64_t)n->round), rv_field_int("until_round", (int64_t)n->until_round),
					   rv_field_int("bytes_per_s", (int64_t)n->rate), rv_field_int("needs_ms", n->needs_ms),
					   rv_field_int("deadline_ms", n->deadline_ms)),
			 "this worker takes part again in round %" PRIu64
			 ": its line carries %.1f Mbit/s and needs %.1f s for what "
			 "a round exchanges, which should take %.1f s. Until then no round waits for it; it trains on, and what it "
			 "trains counts then",
			 round_number(n->until_round), (double)n->rate * 8e-6, n->needs_ms / 1e3, n->deadline_ms / 1e3);
}

static const char *struck(uint8_t reason) {
	switch (reason) {
	case NOTICE_STRUCK_WITHHELD:
		return "auditors did not get from it what it contributed. Is its disk full, or was its directory changed?";
	case NOTICE_STRUCK_TRAINING:
		return "two others measured that what it trained does not lower the loss on the text that was leased to it. "
			   "Test "
			   "this machine's memory, and its graphics card";
	case NOTICE_STRUCK_EVADED:
		return "auditors did not reach it, again and again, although it exchanged rounds with them. Does its router or "
			   "a firewall end connections?";
	default:
		return "it reported of another member's average the opposite of what a majority of its auditors found in the "
			   "same bytes, so there is no other look. Test this machine's memory and disk; `rivulet replay` by the "
			   "operator shows who was right";
	}
}

/* Returns true for a strike about which two others may think better, and have not been asked. */
static bool may_be_lifted(const struct notice *n) {
	return n->kind == NOTICE_STRUCK && !n->final &&
		   (n->reason == NOTICE_STRUCK_WITHHELD || n->reason == NOTICE_STRUCK_TRAINING);
}

static void log_struck(struct session *s, const struct notice *n) {
	char why[RV_ERRTEXT_BYTES];
	const char *look = may_be_lifted(n) ? ". This worker has asked for another look by two more"
					   : n->final       ? ". Two more have looked again: there is no other look"
										: "";
	(void)snprintf(why, sizeof why, "it is left out before round %" PRIu64 ", if enough others are there: %s%s",
				   round_number(n->until_round), struck(n->reason), look);
	session_note_not_counted(s, why);
	rv_event(s->events, RV_WARN, "quarantine",
			 RV_FIELDS(rv_field_int("round", (int64_t)n->round), rv_field_int("reason", n->reason),
					   rv_field_int("until_round", (int64_t)n->until_round)),
			 "this worker is left out before round %" PRIu64 ", if enough others are there: %s%s",
			 round_number(n->until_round), struck(n->reason), look);
}

static void log_not_counted(struct session *s, const struct notice *n) {
	session_note_not_counted(s, not_counted(n->reason));
	rv_event(s->events, RV_WARN, "not_counted",
			 RV_FIELDS(rv_field_int("round", (int64_t)n->round), rv_field_int("reason", n->reason)),
			 "what this worker trains is not counted in round %" PRIu64 ": %s", round_number(n->round),
			 not_counted(n->reason));
}

void session_on_notice(void *ctx, const struct notice *n) {
	struct session *s = ctx;
	s->audit.appeals = may_be_lifted(n);
	if (n->kind == NOTICE_APART)
		log_apart(s, n);
	else if (n->kind == NOTICE_RESTS)
		log_rests(s, n);
	else if (n->kind == NOTICE_NOT_COUNTED)
		log_not_counted(s, n);
	else if (n->kind == NOTICE_STRUCK)
		log_struck(s, n);
	else
		rv_event(s->events, RV_INFO, "counted", RV_NO_FIELDS, "this worker takes part again: what it trains counts");
	if (n->kind == NOTICE_RESTS)
		session_note_not_counted(s, "its line is slower than the rounds: it rests for a few, and what it trains "
									"counts in the next one with it");
	else if (n->kind != NOTICE_NOT_COUNTED && n->kind != NOTICE_STRUCK && !(n->kind == NOTICE_APART && n->left_out))
		session_note_not_counted(s, NULL);
}
