/* text.c: the text of a run that hands it out, fetched while the worker trains. */
#include "worker/session/internal.h"

#include "base/hex.h"
#include "base/model_shape.h"
#include "base/signals.h"
#include "net/address_reach.h"
#include "worker/text/text_reading.h"

#include <stdio.h>
#include <string.h>

/* Returns in which range the coordinator is reached: mirrors may not be in a narrower one. */
static enum address_reach reach_of_coordinator(const struct session *s) {
	struct address a;
	if (!http_client_met(s->http, &a) && address_resolve(&s->member.invite.coordinator, &a, NULL) != RV_OK)
		return ADDRESS_PUBLIC;
	return address_reach(&a);
}

static bool show_progress(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes) {
	struct session *s = ctx;
	rv_progress(s->events, rv_clock_monotonic_us(), what, done_bytes, total_bytes, "byte", "");
	return rv_signals_take(s->signals.fd) == 0;
}

/* The trainer asks for text only while there is one. */
static bool stops(void *ctx) {
	const struct session *s = ctx;
	return s->trainer && trainer_stops(s->trainer);
}

int64_t session_text_most(const struct worker_options *o) {
	return o->max_down > 0 ? o->max_down / 2 + 1 : 0;
}

static enum rv_err text_quota(const struct session *s, uint64_t *out, struct rv_errtext *et) {
	struct model_extent extent;
	struct session_disk_plan disk;
	struct global_config g;
	RV_TRY(session_global_of(&s->member.config, &extent, &g, et));
	RV_TRY(session_plan_disk(s, &s->member.config, &g, &disk, et));
	*out = disk.text_bytes;
	return RV_OK;
}

enum rv_err session_open_text(struct session *s, struct rv_errtext *et) {
	const struct run_config *run = &s->member.config;
	struct http_client_config coordinator = {
		.server = s->member.invite.coordinator, .trust = s->member.trust, .identity = &s->member.identity};
	char dir[SESSION_PATH_BYTES];
	struct run_about agreed;
	struct rv_hash accepted;
	(void)terms_read(s->opt->dir, &agreed, &accepted);
	struct text_config cfg = {.dir = dir,
							  .hosts = agreed.text_hosts,
							  .coordinator = &coordinator,
							  .met = reach_of_coordinator(s),
							  .most_per_s = session_text_most(s->opt),
							  .progress = show_progress,
							  .ctx = s};
	RV_TRY(text_quota(s, &cfg.quota_bytes, et));
	if (!rv_hex_decode(run->data_hash, cfg.data_hash.b, sizeof cfg.data_hash.b))
		return rv_fail(et, RV_E_INVALID, "data-hash %s of the run is no hash", run->data_hash);
	(void)snprintf(dir, sizeof dir, "%s/data/%s", s->opt->dir, run->data_hash);
	const enum rv_err e = text_open(&cfg, &s->text, et);
	rv_progress_clear(s->events);
	RV_TRY(e);
	text_set_stops(s->text, stops, s);
	const struct manifest *m = text_manifest(s->text);
	RV_TRY(session_check_text_room(s, cfg.quota_bytes, least_room_bytes(m), et));
	s->order = sequence_order_of((uint64_t)m->n_tokens, (uint32_t)m->holdout_every, (uint32_t)run->context,
								 (uint64_t)run->seed);
	const struct heldout h =
		heldout_of((uint64_t)m->n_tokens, (uint32_t)m->holdout_every, (uint32_t)run->context, true);
	s->n_heldout = text_heldout_shards(&h, m, (uint64_t)s->opt->eval_tokens, s->heldout, TEXT_FILES_MAX);
	(void)snprintf(s->data_path, sizeof s->data_path, "%s", dir);
	rv_event(s->events, RV_DEBUG, "text", RV_FIELDS(rv_field_int("shards", m->n_shards), rv_field_str("dir", dir)),
			 "the run hands out its text: %lld tokens, fetched into %s as they are needed", (long long)m->n_tokens,
			 dir);
	return RV_OK;
}

void session_want_heldout(struct session *s) {
	if (!s->text)
		return;
	const bool evaluates =
		s->core && ((session_core_is_first(s->core) && s->opt->eval_every != 0) || session_weighs(s));
	text_want_later(s->text, s->heldout, evaluates ? s->n_heldout : 0);
}

void session_want_shards(struct session *s) {
	uint64_t shards[TEXT_FILES_MAX];
	if (!s->text)
		return; /* all of it is here */
	const int most = s->audit.job ? TEXT_FILES_MAX * 3 / 4 : TEXT_FILES_MAX;
	int n = text_reading_shards(&s->audit.trains, &s->order, text_manifest(s->text), shards, most);
	n = session_score_shards(s, shards, n, TEXT_FILES_MAX);
	text_want(s->text, shards, n);
}

void session_want_text(struct session *s, const struct trainer_request *rq) {
	if (!s->text || rq->work != TRAINER_TRAIN || !rq->has_leases)
		return;
	s->audit.trains = rq->reading;
	session_want_shards(s);
	session_want_heldout(s);
}

void session_log_text(struct session *s) {
	char notice[TEXT_NOTICE_BYTES];
	while (s->text && text_notice(s->text, notice))
		rv_event(s->events, RV_WARN, "text_source", RV_FIELDS(rv_field_str("text", notice)), "%s", notice);
}

void session_count_text(struct session *s, struct metrics_round *r) {
	if (!s->text)
		return;
	const struct text_stats now = text_stats(s->text);
	r->data_stall_us = now.stall_us - s->text_stall_then;
	r->text_bytes = now.bytes[TEXT_MIRROR] + now.bytes[TEXT_MEMBER] + now.bytes[TEXT_COORDINATOR];
	s->text_stall_then = now.stall_us;
}

void session_report_text(struct session *s, struct report *r) {
	r->own_text = s->own_text;
	if (!s->text)
		return;
	const struct text_stats now = text_stats(s->text);
	r->text_mirror_bytes = now.bytes[TEXT_MIRROR];
	r->text_member_bytes = now.bytes[TEXT_MEMBER];
	r->text_coordinator_bytes = now.bytes[TEXT_COORDINATOR];
	r->text_stall_us = (uint64_t)now.stall_us;
}

void session_close_text(struct session *s) {
	text_close(s->text);
	s->text = NULL;
}
