/* control.c: the session core's reports to the coordinator and events for the log; and the
 * coordinator's documents. */
#include "worker/session/internal.h"

#include "base/failpoint.h"
#include "net/control/signed_roots.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- reports ---- */

static float within_float(double v) {
	return (float)fmax(fmin(v, (double)FLT_MAX), -(double)FLT_MAX);
}

static void fill_for_people(struct session *s, struct report *r) {
	struct trainer_progress p = trainer_progress(s->trainer);
	const struct peers *mesh = meshlink_peers(s->mesh);
	struct peers_traffic traffic = peers_total(mesh);
	r->inner_step = p.global_step;
	r->loss = isfinite(p.loss) ? p.loss : 0;
	r->tokens_per_s = p.tokens_per_s;
	r->heldout_round = s->history.measured_round;
	r->heldout_loss = within_float(s->history.measured);
	r->tx_bytes = traffic.tx_bytes;
	r->rx_bytes = traffic.rx_bytes;
	r->up_bytes_per_s = line_meter_up(&s->line, s->opt->max_up);
	r->down_bytes_per_s = line_meter_down(&s->line, s->opt->max_down);
	receipts_report(&s->receipts, r);
	uint32_t members[NET_MAX_PEERS];
	for (int i = 0, n = peers_list(mesh, members); i < n; i++)
		report_add_path(r, members[i], peers_way_byte(peers_way(mesh, members[i])));
	r->relay = reach_core_relay(reach_core_of(s->reach));
	r->offers_relay = session_offered_relay(s);
	r->reach = s->reachability.kind;
	r->compute_us = (uint64_t)p.compute_us;
	r->reduce_us = (uint64_t)s->sums.reduce_us;
	session_report_text(s, r);
	session_report_audits(s, r);
	session_report_candidates(s, r);
}

/* Adds an owner's measurements to its vote; a vote that an earlier process left on the disk has
 * none. Those of a participant that contributed to some of the owner's chunks only are scaled to
 * all of them, as the mean is over these and those: so its cosine is that of what it sent. */
static void fill_measured(const struct session *s, struct report *r) {
	const struct merge_measured *m = allreduce_measured(s->reduce);
	if (r->phase != WORKER_VOTED || !allreduce_done(s->reduce) || allreduce_round(s->reduce) != r->round ||
		allreduce_attempt(s->reduce) != r->attempt)
		return;
	r->n_measured = (uint16_t)allreduce_row_members(s->reduce);
	for (uint32_t i = 0; i < r->n_measured; i++) {
		const double k = m->mean2_of[i] > 0 ? m->mean2 / m->mean2_of[i] : 0;
		r->measured[i] = (struct report_measured){
			.norm2 = within_float(k * m->norm2[i]), .dot = within_float(k * m->dot[i]), .clipped = m->clipped[i]};
	}
	r->mean2 = within_float(m->mean2);
	r->stands_out = (uint32_t)(1 + allreduce_stands_out(s->reduce));
}

static void report(void *ctx, struct report *r) {
	struct session *s = ctx;
	fill_for_people(s, r);
	fill_measured(s, r);
	const struct seal_ops seals = seal_ed25519(&s->member.identity);
	report_sign(r, s->member.invite.run_id, &seals);
	if (r->phase == WORKER_READY)
		RV_FAILPOINT("ready.before");
	if (r->phase == WORKER_VOTED)
		RV_FAILPOINT("vote.before");
	control_client_report(s->control, r);
}

static bool reported(void *ctx) {
	return control_client_reported(((struct session *)ctx)->control);
}

/* ---- effects of the core's events, beside the log ---- */

static void on_exported(struct session *s, const struct session_event *e) {
	if (e->text[0])
		rv_event(s->events, RV_WARN, "no_tokenizer", RV_NO_FIELDS, "%s", e->text);
	session_write_end(s, e->hash);
}

static void log_event(void *ctx, const struct session_event *e) {
	struct session *s = ctx;
	session_log_event(s, e);
	if (e->type == SESSION_LOGS_DONE)
		meshlink_expect_ends(s->mesh);
	if (e->type == SESSION_LOGS_EXPORTED)
		on_exported(s, e);
	if (e->type == SESSION_LOGS_STOPPING)
		RV_FAILPOINT("leave.begin");
	if (e->type != SESSION_LOGS_ROLLBACK)
		return;
	session_write_rollback(s, e->round, e->term);
	session_trace(s, trace_rollback(e->round));
}

const struct session_control_ops session_control_ops = {.report = report, .reported = reported, .log = log_event};

/* ---- documents ---- */

void session_on_document(void *ctx, const struct document *d) {
	struct session *s = ctx;
	RV_FAILPOINT("document.received");
	session_own_relay_follow(s, d);
	(void)session_core_on_document(s->core, d);
}

void session_on_older(void *ctx, const struct document *d, uint64_t seen) {
	struct session *s = ctx;
	char why[RV_ERRTEXT_BYTES];
	(void)snprintf(why, sizeof why,
				   "document %" PRIu64 " (round %" PRIu64 ", term %" PRIu64
				   "), and this worker has followed document %" PRIu64 " (term %" PRIu64 ")",
				   d->seq, d->round, d->term, seen, s->member.term);
	session_core_on_older(s->core, d, why);
}
