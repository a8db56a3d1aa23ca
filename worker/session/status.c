/* status.c: the status of a worker, for its page, `rivulet-worker status` and programs
 * (docs/files.md has the fields). */
#include "worker/session/internal.h"

#include "base/hex.h"
#include "base/version.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static json_t *whole(uint64_t v) {
	return json_integer((json_int_t)v);
}

static json_t *real(double v) {
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *seconds(int64_t wall_us) {
	return json_real((double)wall_us / 1e6);
}

/* ---- what it does ---- */

struct doing {
	const char *state, *text;
};

static struct doing doing_before(const struct session *s) {
	if (s->member.joined && s->local->rests)
		return (struct doing){"paused", allow_why_text(s->local->allowed.core.why)};
	if (!s->member.joined && s->waits_for[0])
		return (struct doing){"waiting_for_approval", "The operator has to approve this computer first."};
	if (!s->member.joined)
		return (struct doing){"joining", "Asking the run's coordinator to take part."};
	return (struct doing){"starting", "Reading the text and the state."};
}

static struct doing doing_in_round(struct session *s) {
	const struct trainer_progress p = trainer_progress(s->trainer);
	const struct document *d = round_document(session_round(s));
	if (d && d->phase == RUN_DONE && round_lacks_donors(session_round(s)))
		return (struct doing){"waiting", "The run has ended, and no member that has its last state is there: this "
										 "worker waits half a minute for one, and ends."};
	if (session_core_missing_workers(s->core) > 0)
		return (struct doing){"waiting", "Waiting for more workers: the run needs them to go on."};
	switch (round_phase(session_round(s))) {
	case WORKER_SYNCING:
		return (struct doing){"catching_up", "Fetching the run's state from other members."};
	case WORKER_READY:
		return p.step_since_us > 0
				   ? (struct doing){"training", "Training."}
				   : (struct doing){"waiting", "Done with its part of the round; waiting for the others."};
	case WORKER_REDUCING:
	case WORKER_VOTED:
		return (struct doing){"averaging", "Exchanging the round's results with the others."};
	default:
		return session_core_finishes(s->core) ? (struct doing){"training", "Training; it ends after this round."}
											  : (struct doing){"training", "Training."};
	}
}

static struct doing doing_paused(const struct session *s) {
	const struct document *d = round_document(session_round(s));
	if (d && d->phase == RUN_DONE)
		return (struct doing){"paused", "The run is done; this worker is paused: resume it to get the model."};
	return (struct doing){"paused", allow_why_text(s->local->allowed.core.why)};
}

static struct doing doing_now(struct session *s) {
	if (!session_is_up(s))
		return doing_before(s);
	switch (session_core_phase(s->core)) {
	case SESSION_RUNNING:
		return session_core_is_paused(s->core) ? doing_paused(s) : doing_in_round(s);
	case SESSION_EXPORTING:
	case SESSION_LINGERING:
		return (struct doing){"done", "The run is done. Thank you!"};
	default:
		return s->local->rests                  ? doing_before(s)
			   : session_core_exported(s->core) ? (struct doing){"done", "The run is done. Thank you!"}
												: (struct doing){"stopping", "Saving, then it ends."};
	}
}

/* Returns NULL, or what the person at this computer should look after. */
static const char *trouble(const struct session *s) {
	if (session_core_disk_is_full(s->core))
		return "The disk is full: make room on it. Nothing that is saved is lost; what is new cannot be saved.";
	return session_core_storage_fails(s->core) ? "The disk fails, so that nothing new can be saved: the log has the "
												 "reason."
											   : NULL;
}

/* ---- the parts ---- */

static json_t *about_run(const struct session *s) {
	char id[2 * NET_RUN_ID_BYTES + 1], coordinator[NET_ADDR_BYTES] = "";
	rv_hex_encode(s->member.invite.run_id, NET_RUN_ID_BYTES, id);
	(void)address_format(&s->member.invite.coordinator, coordinator);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "name", s->about.name, "purpose",
					 s->about.purpose, "operator", s->about.operator_name, "text_license", s->about.text_license,
					 "model_license", s->about.model_license, "model_at", s->about.model_at, "id", id, "coordinator",
					 coordinator, "parameters", session_is_up(s) ? whole(s->store.cfg.n) : json_null(), "rounds",
					 s->member.joined ? json_integer(s->member.config.rounds) : json_null());
}

static json_t *last_round(const struct session *s) {
	const struct session_history *h = &s->history;
	if (!h->has_round)
		return json_null();
	return json_pack("{s:o, s:b, s:s, s:o}", "round", whole(h->round), "counted", h->counted, "why_not", h->why_not,
					 "at", seconds(h->wall_us));
}

static json_t *given(const struct session *s) {
	const struct session_sums *sums = &s->sums;
	return json_pack("{s:o, s:o, s:o}", "rounds", whole(sums->given_rounds), "tokens", whole(sums->given_tokens),
					 "share",
					 sums->tokens > 0 ? json_real((double)sums->given_tokens / (double)sums->tokens) : json_null());
}

static json_t *line(const struct session *s) {
	const struct peers_traffic t = peers_total(meshlink_peers(s->mesh));
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "up_bytes_per_s", whole(line_meter_up(&s->line, s->opt->max_up)),
					 "down_bytes_per_s", whole(line_meter_down(&s->line, s->opt->max_down)), "sent_bytes",
					 whole(t.tx_bytes), "received_bytes", whole(t.rx_bytes), "max_up", (json_int_t)s->opt->max_up,
					 "max_down", (json_int_t)s->opt->max_down);
}

static json_t *eta_s(const struct session *s, uint64_t round) {
	const uint64_t rounds = (uint64_t)s->member.config.rounds;
	if (s->history.round_us <= 0 || round >= rounds)
		return json_null();
	return json_real((double)(rounds - round) * s->history.round_us / 1e6);
}

static json_t *progress(struct session *s) {
	const struct trainer_progress p = trainer_progress(s->trainer);
	const struct document *d = round_document(session_round(s));
	const uint64_t own = round_round(session_round(s)), round = d && d->round > own ? d->round : own;
	return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:s}", "round", whole(round), "own_round", whole(own),
					 "step", whole(p.done.steps_done), "steps_per_round", (json_int_t)s->member.config.steps_per_round,
					 "loss", real((double)p.loss), "tokens_per_s", real((double)p.tokens_per_s), "participants",
					 whole(s->sums.participants), "eta_s", eta_s(s, round), "device", trainer_device(s->trainer));
}

static void put(json_t *o, const char *key, json_t *value) {
	(void)json_object_set_new(o, key, value); /* without memory the part is missing */
}

json_t *session_status(struct session *s, int64_t now_us) {
	const struct doing d = doing_now(s);
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "software", rv_version(), "state", d.state, "text", d.text,
						  "dir", s->opt->dir, "at", seconds(rv_clock_wall_us()), "running_s",
						  json_real((double)(now_us - s->started_us) / 1e6));
	if (!o)
		return NULL;
	put(o, "run", about_run(s));
	put(o, "member", s->member.joined ? json_integer(s->member.member) : json_null());
	put(o, "last_round", last_round(s));
	put(o, "given", given(s));
	put(o, "allowed", session_allowed_json(s));
	put(o, "training", loss_curve_json(&s->history.training));
	put(o, "heldout", loss_curve_json(&s->history.heldout));
	if (!s->member.joined && s->waits_for[0])
		put(o, "waits_for", json_string(s->waits_for));
	if (!session_is_up(s))
		return o;
	if (trouble(s))
		put(o, "trouble", json_string(trouble(s)));
	put(o, "progress", progress(s));
	put(o, "line", line(s));
	json_t *weighing = session_weigh_json(s);
	if (weighing)
		put(o, "weighing", weighing);
	return o;
}
