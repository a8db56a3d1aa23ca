/* meshlink.c: dispatch between links and those that use them. */
#include "worker/mesh/meshlink.h"

#include "worker/mesh/house.h"

#include <stdlib.h>
#include <string.h>

struct meshlink {
	struct allreduce *reduce;
	struct donor *donor;
	struct fetcher *fetcher;
	struct text_members *text;
	struct text_donor *text_donor;
	struct auditor *auditor;
	struct gather *gather;
	struct donor *contributions;
	struct rv_events *events;
	void (*unreached)(void *ctx, uint32_t member, enum peers_need need);
	void (*route_end)(void *ctx, uint32_t member, const struct route *route, int64_t lived_us, bool failed);
	void *routes_ctx;
	struct peers *peers;
	struct house house;
	uint32_t self;
	uint64_t run_tag;
	uint64_t round; /* the open one, of the latest document */
	bool expects_ends;
	int64_t now_us; /* of the current call into the mesh: callbacks have no clock */
};

static struct peers_message of_reduce(const struct meshlink *m, const struct reduce_msg *msg) {
	return (struct peers_message){
		.header = frame_reduce_encode(msg, m->run_tag), .part = {msg->data, NULL}, .part_bytes = {msg->data_bytes, 0}};
}

/* Questions and requests for text, and answers to questions. */
static bool text_control(struct meshlink *m, uint32_t member, struct peers_message *out) {
	return (m->text && text_members_send(m->text, member, out)) ||
		   (m->text_donor && text_donor_answer(m->text_donor, m->now_us, member, out));
}

static bool audit_control(struct meshlink *m, uint32_t member, struct peers_message *out) {
	return (m->auditor && auditor_send(m->auditor, m->now_us, member, out)) ||
		   (m->gather && gather_send(m->gather, m->now_us, member, out));
}

/* Under a cap on the upload: what need not wait for it. */
static bool next_control(void *ctx, uint32_t member, struct peers_message *out) {
	struct meshlink *m = ctx;
	struct reduce_msg msg;
	if (!allreduce_send_control(m->reduce, m->now_us, member, &msg))
		return fetcher_send(m->fetcher, m->now_us, member, out) || audit_control(m, member, out) ||
			   text_control(m, member, out);
	*out = of_reduce(m, &msg);
	return true;
}

static bool is_awaited(void *ctx, uint32_t member) {
	struct meshlink *m = ctx;
	return allreduce_is_awaited(m->reduce, member);
}

static double part_left(void *ctx, uint32_t member) {
	const struct meshlink *m = ctx;
	return allreduce_part_left(m->reduce, member);
}

/* Tells all donors what the all-reduce sends: each may give a share of it. */
static void note_reduce(struct meshlink *m, const struct reduce_msg *msg) {
	if (msg->type != REDUCE_SCATTER && msg->type != REDUCE_GATHER)
		return;
	donor_reduce_sent(m->donor, m->now_us, msg->data_bytes);
	if (m->contributions)
		donor_reduce_sent(m->contributions, m->now_us, msg->data_bytes);
	if (m->text_donor)
		donor_reduce_sent(text_donor_pieces(m->text_donor), m->now_us, msg->data_bytes);
}

/* Control and tensors before state and text: neither slows a round down. */
static bool next_message(void *ctx, uint32_t member, struct peers_message *out) {
	struct meshlink *m = ctx;
	struct reduce_msg msg;
	if (allreduce_send(m->reduce, m->now_us, member, &msg)) {
		*out = of_reduce(m, &msg);
		note_reduce(m, &msg);
		return true;
	}
	return fetcher_send(m->fetcher, m->now_us, member, out) || audit_control(m, member, out) ||
		   text_control(m, member, out) || donor_send(m->donor, m->now_us, member, out) ||
		   (m->contributions && donor_send(m->contributions, m->now_us, member, out)) ||
		   (m->text_donor && text_donor_send(m->text_donor, m->now_us, member, out));
}

/* Returns true for what auditors ask for. */
static bool is_audited(enum frame_fetch_kind kind) {
	return kind == FRAME_FETCH_CONTRIBUTION || kind == FRAME_FETCH_INNER || kind == FRAME_FETCH_SUM;
}

static enum rv_err take_fetch(struct meshlink *m, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et) {
	const enum frame_fetch_kind kind = h->type == FRAME_FETCH ? frame_kind_of(h, body) : FRAME_FETCH_TEXT;
	if (is_audited(kind) && m->contributions)
		return donor_receive(m->contributions, member, h, body, et);
	if (is_audited(kind))
		return rv_fail(et, RV_E_PROTOCOL, "a contribution is asked for, and the run has no audits");
	if (kind != FRAME_FETCH_TEXT)
		return donor_receive(m->donor, member, h, body, et);
	if (!m->text_donor)
		return rv_fail(et, RV_E_PROTOCOL, "text is asked for, and the run has none of its own");
	return text_donor_receive(m->text_donor, m->now_us, member, h, body, et);
}

static enum rv_err take_answer(struct meshlink *m, uint32_t member, const struct frame_header *h, const uint8_t *body,
							   struct rv_errtext *et) {
	const enum frame_fetch_kind kind = h->type != FRAME_TEXT_HELD ? frame_kind_of(h, body) : FRAME_FETCH_TEXT;
	if (kind == FRAME_FETCH_CONTRIBUTION && m->gather && gather_awaits(m->gather, member, h, body))
		return gather_receive(m->gather, m->now_us, member, h, body, et);
	if (is_audited(kind) && m->auditor)
		return auditor_receive(m->auditor, m->now_us, member, h, body, et);
	if (is_audited(kind))
		return rv_fail(et, RV_E_PROTOCOL, "a contribution that was not asked for");
	if (kind != FRAME_FETCH_TEXT)
		return fetcher_receive(m->fetcher, m->now_us, member, h, body, et);
	if (!m->text)
		return rv_fail(et, RV_E_PROTOCOL, "text that was not asked for");
	return text_members_receive(m->text, member, h, body, et);
}

static enum rv_err on_message(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et) {
	struct meshlink *m = ctx;
	if (frame_is_reduce(h->type)) {
		struct reduce_msg msg;
		frame_reduce_decode(h, body, &msg);
		return allreduce_receive(m->reduce, m->now_us, member, &msg, et);
	}
	if (h->type == FRAME_FETCH || h->type == FRAME_TEXT_ASK)
		return take_fetch(m, member, h, body, et);
	if (h->type == FRAME_PIECE || h->type == FRAME_NONE || h->type == FRAME_TEXT_HELD)
		return take_answer(m, member, h, body, et);
	return rv_fail(et, RV_E_PROTOCOL, "a %s frame is not expected here", frame_type_name(h->type));
}

static void on_part(void *ctx, uint32_t member, bool bulk) {
	struct meshlink *m = ctx;
	allreduce_part(m->reduce, m->now_us, member, bulk);
}

/* Logs how a pair met: by which of the ways, and after how long. */
static void tell_path(struct meshlink *m, uint32_t member) {
	double seconds = (double)peers_met_after_us(m->peers, member) * 1e-6;
	const struct peers_way way = peers_way(m->peers, member);
	const char *path = path_name((uint8_t)way.path), *dialed = "";
	if (way.path == PATH_DIALED)
		dialed = candidate_kind_name(way.candidate);
	rv_event(m->events, RV_DEBUG, "path",
			 RV_FIELDS(rv_field_int("member", member), rv_field_str("path", path),
					   rv_field_int("family", way.path == PATH_RELAYED ? 0
											  : way.ipv6               ? 6
																	   : 4),
					   rv_field_bool("lan", way.lan), rv_field_str("candidate", dialed),
					   rv_field_double("seconds", seconds)),
			 "linked with member %u (%s%s%s) after %.1f s", member, path, way.ipv6 ? ", IPv6" : "",
			 way.lan ? ", not over the internet" : "", seconds);
}

static void on_unreached(void *ctx, uint32_t member, enum peers_need need) {
	struct meshlink *m = ctx;
	m->unreached(m->routes_ctx, member, need);
}

static void on_route_end(void *ctx, uint32_t member, const struct route *route, int64_t lived_us, bool failed) {
	struct meshlink *m = ctx;
	m->route_end(m->routes_ctx, member, route, lived_us, failed);
}

static void on_link_up(void *ctx, uint32_t member) {
	struct meshlink *m = ctx;
	allreduce_link_up(m->reduce, m->now_us, member);
	fetcher_link_up(m->fetcher, m->now_us, member);
	if (m->text)
		text_members_link_up(m->text, member);
	tell_path(m, member);
}

static void on_link_down(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text) {
	struct meshlink *m = ctx;
	allreduce_link_down(m->reduce, m->now_us, member, fatal);
	fetcher_link_down(m->fetcher, m->now_us, member);
	donor_link_down(m->donor, member);
	if (m->auditor)
		auditor_link_down(m->auditor, m->now_us, member, !peers_was_own_end(why));
	if (m->gather)
		gather_link_down(m->gather, member);
	if (m->contributions)
		donor_link_down(m->contributions, member);
	if (m->text)
		text_members_link_down(m->text, member);
	if (m->text_donor)
		text_donor_link_down(m->text_donor, member);
	bool broke_a_rule = why == RV_E_PROTOCOL || why == RV_E_INVALID || why == RV_E_CORRUPT || why == RV_E_AUTH;
	bool is_expected = m->expects_ends || why == RV_E_CANCELLED; /* by this worker: a pause, another cap */
	enum rv_level level = broke_a_rule ? RV_WARN : is_expected ? RV_DEBUG : RV_INFO;
	rv_event(m->events, level, "link_down",
			 RV_FIELDS(rv_field_int("member", member), rv_field_bool("fatal", fatal),
					   rv_field_str("error", rv_err_name(why)), rv_field_str("text", text)),
			 "the link to member %u is gone: %s", member, text);
}

static void on_trouble(void *ctx, enum rv_err why, const char *text) {
	struct meshlink *m = ctx;
	bool ended =
		m->expects_ends && (why == RV_E_NOTFOUND || why == RV_E_CLOSED || why == RV_E_TIMEOUT || why == RV_E_IO);
	rv_event(m->events, ended ? RV_DEBUG : RV_WARN, "peer_refused",
			 RV_FIELDS(rv_field_str("error", rv_err_name(why)), rv_field_str("text", text)), "%s", text);
}

enum rv_err meshlink_new(const struct meshlink_config *cfg, struct meshlink **out, struct rv_errtext *et) {
	struct meshlink *m = calloc(1, sizeof *m);
	if (!m)
		return rv_fail(et, RV_E_NOMEM, "no memory for peer links");
	m->reduce = cfg->reduce;
	m->donor = cfg->donor;
	m->fetcher = cfg->fetcher;
	m->text = cfg->text;
	m->text_donor = cfg->text_donor;
	m->auditor = cfg->auditor;
	m->gather = cfg->gather;
	m->contributions = cfg->contributions;
	m->events = cfg->events;
	m->unreached = cfg->on_unreached;
	m->route_end = cfg->on_route_end;
	m->routes_ctx = cfg->ctx;
	m->self = cfg->peers.self_member;
	m->run_tag = frame_run_tag(cfg->peers.run_id);
	struct peers_config peers = cfg->peers;
	peers.owner = (struct peers_owner){.ctx = m,
									   .next_message = next_message,
									   .next_control = next_control,
									   .is_awaited = is_awaited,
									   .part_left = part_left,
									   .on_message = on_message,
									   .on_part = on_part,
									   .on_link_up = on_link_up,
									   .on_link_down = on_link_down,
									   .on_trouble = on_trouble,
									   .on_unreached = on_unreached,
									   .on_route_end = on_route_end};
	enum rv_err e = peers_new(&peers, &m->peers, et);
	if (e != RV_OK) {
		free(m);
		return e;
	}
	*out = m;
	return RV_OK;
}

void meshlink_free(struct meshlink *m) {
	if (!m)
		return;
	peers_free(m->peers);
	free(m);
}

struct peers *meshlink_peers(struct meshlink *m) {
	return m->peers;
}

void meshlink_expect_ends(struct meshlink *m) {
	m->expects_ends = true;
}

void meshlink_allow(struct meshlink *m, int64_t now_us, const struct document *d) {
	struct member_set donors = {0};
	for (int i = 0; i < d->n_members; i++)
		if (!banned_has(&d->banned, d->members[i].member))
			(void)member_set_add(&donors, d->members[i].member);
	m->now_us = now_us;
	m->round = d->round;
	fetcher_allow(m->fetcher, now_us, &donors);
	peers_ban(m->peers, now_us, &d->banned);
	struct member_ref linked[DOCUMENT_MAX_LINKED];
	const int n = document_linked(d, linked);
	house_follow(&m->house, d, m->self);
	for (int i = 0; i < n; i++)
		house_filter(&m->house, &linked[i]);
	peers_allow(m->peers, now_us, linked, n);
}

void meshlink_pause(struct meshlink *m, int64_t now_us, bool paused) {
	m->now_us = now_us;
	peers_pause(m->peers, now_us, paused);
}

void meshlink_announce_links(struct meshlink *m, int64_t now_us) {
	uint32_t members[NET_MAX_PEERS];
	for (int i = 0, n = peers_list(m->peers, members); i < n; i++)
		if (peers_linked(m->peers, members[i]))
			allreduce_link_up(m->reduce, now_us, members[i]);
}

void meshlink_handle(struct meshlink *m, int64_t now_us, const struct pollfd *fds, int n) {
	m->now_us = now_us;
	peers_handle(m->peers, now_us, fds, n);
}

void meshlink_pump(struct meshlink *m, int64_t now_us) {
	m->now_us = now_us;
	bool reducing = allreduce_running(m->reduce) && !allreduce_done(m->reduce);
	donor_set_round(m->donor, m->round, reducing);
	if (m->contributions)
		donor_set_round(m->contributions, m->round, reducing);
	if (m->text_donor)
		donor_set_round(text_donor_pieces(m->text_donor), m->round, reducing);
	peers_keep_paths(m->peers, reducing);
	peers_pump(m->peers, now_us);
}
