/* sim_peers.c: links between workers, and the platform around net/reduce.
 *
 * A link is dialled with SYN, accepted with ACK, and has a number: packets of another number are answered with RST. At
 * most WINDOW frames are under way on one link, one way, as in a socket's buffer: the rest is pulled from the
 * all-reduce when there is room. Like the real platform (net/mesh/pace.c) it begins no chunk and no piece while the
 * line has more to send than it carries in LINE_QUEUE_US, and LINE_FRAMES frames: PING would wait behind them all. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum {
	WINDOW = 3,
	LINE_QUEUE_US = 60 * SIM_MS,
	LINE_FRAMES = 2,
	DIAL_TIMEOUT_US = 2500 * SIM_MS,
	TCP_TIMEOUT_US = 6 * SIM_S,
	KEEPALIVE_US = 8 * SIM_S, /* an idle link to a machine that lost power is found out, whether it is back or not */
	SILENCE_US = 2500 * SIM_MS,
	PING_US = 800 * SIM_MS
};

static uint64_t run_tag(const struct sim *s) {
	return s->opt.seed;
}

static int index_of(const struct sim_worker *w, int peer) {
	return w->reduce != NULL ? w->roster_index[peer] : -1;
}

static void wake(struct sim *s, int host, void *arg) {
	(void)arg;
	worker_turn(s, host);
}

static void send_bare(struct sim *s, int host, int peer, enum packet_kind kind, uint32_t number) {
	struct packet *p = packet_new(host, peer, kind, NULL, 0);
	p->link = number;
	sim_send(s, p);
}

/* ---- state of a link's end ---- */

static void clear_queue(struct sim_link *l) {
	for (int i = 0; i < l->n_queue; i++)
		free(l->queue[i]);
	l->n_queue = 0;
	l->in_flight = 0;
}

static void tell_reduce(struct sim *s, int host, int peer, bool refused) {
	struct sim_worker *w = &s->workers[host];
	int index = index_of(w, peer);
	if (index < 0)
		return;
	if (w->links[peer].state == LINK_UP)
		reduce_link_up(w->reduce, s->now_us, index);
	else
		reduce_link_down(w->reduce, s->now_us, index, refused);
}

static void set_down(struct sim *s, int host, int peer, bool refused) {
	struct sim_link *l = &s->workers[host].links[peer];
	l->state = LINK_DOWN;
	sim_say(s, host, refused ? "is refused by w%d" : "has no link to w%d any more", peer);
	l->redial_us = s->now_us + sim_between(s, host, LUCK_LINE, 100 * SIM_MS, SIM_S);
	clear_queue(l);
	tell_reduce(s, host, peer, refused);
	fetch_link_changed(s, host, peer);
	sim_at(s, l->redial_us, host, s->workers[host].life, wake, NULL);
}

static void set_up(struct sim *s, int host, int peer, uint32_t number) {
	struct sim_link *l = &s->workers[host].links[peer];
	clear_queue(l);
	l->state = LINK_UP;
	l->number = number;
	sim_say(s, host, "has a link to w%d", peer);
	tell_reduce(s, host, peer, false);
	fetch_link_changed(s, host, peer); /* asks again on the new one */
}

struct end {
	int peer;
	uint32_t number;
};

static void link_breaks(struct sim *s, int host, void *arg) {
	struct end e = *(struct end *)arg;
	free(arg);
	struct sim_link *l = &s->workers[host].links[e.peer];
	if (s->workers[host].core == NULL || l->state != LINK_UP || l->number != e.number)
		return;
	set_down(s, host, e.peer, false);
	worker_turn(s, host);
}

void peers_break_at(struct sim *s, int host, int peer, uint32_t number, int64_t at_us) {
	struct end *e = sim_alloc(sizeof *e);
	*e = (struct end){.peer = peer, .number = number};
	sim_at(s, at_us, host, s->workers[host].life, link_breaks, e);
}

void peers_close_all(struct sim *s, int host, bool silent) {
	for (int peer = 0; peer < s->opt.n_workers; peer++) {
		struct sim_link *l = &s->workers[host].links[peer];
		if (l->state != LINK_DOWN && !silent)
			send_bare(s, host, peer, PACKET_RST, l->number);
		else if (l->state != LINK_DOWN)
			peers_break_at(s, peer, host, l->number, s->now_us + KEEPALIVE_US);
		clear_queue(l);
		*l = (struct sim_link){0};
	}
}

/* ---- dialling ---- */

static void dial_times_out(struct sim *s, int host, void *arg) {
	struct end d = *(struct end *)arg;
	free(arg);
	struct sim_link *l = &s->workers[host].links[d.peer];
	if (l->state == LINK_DIALING && l->number == d.number)
		set_down(s, host, d.peer, false);
	worker_turn(s, host);
}

static void dial(struct sim *s, int host, int peer) {
	struct sim_link *l = &s->workers[host].links[peer];
	l->state = LINK_DIALING;
	l->dialed_us = s->now_us;
	l->number = ++s->next_link;
	send_bare(s, host, peer, PACKET_SYN, l->number);
	struct end *d = sim_alloc(sizeof *d);
	*d = (struct end){.peer = peer, .number = l->number};
	sim_at(s, s->now_us + DIAL_TIMEOUT_US, host, s->workers[host].life, dial_times_out, d);
}

/* Both may dial at once: then the dial of the lower host is the one that counts, unless it leads nowhere: to one that
 * nobody can dial, or for longer than there and back. */
static void on_syn(struct sim *s, const struct packet *p) {
	struct sim_link *l = &s->workers[p->dst].links[p->src];
	int64_t there_and_back_us = 2 * (s->opt.delay_us + s->opt.jitter_us) + SIM_S / 2;
	bool may_arrive = (s->net.undialable >> p->src & 1) == 0 && s->now_us - l->dialed_us < there_and_back_us;
	if (l->state == LINK_DIALING && p->dst < p->src && may_arrive)
		return;
	if (l->state == LINK_UP) { /* the other end has given it up, or this is an older dial that was held up */
		send_bare(s, p->dst, p->src, PACKET_RST, l->number);
		set_down(s, p->dst, p->src, false);
	}
	set_up(s, p->dst, p->src, p->link);
	send_bare(s, p->dst, p->src, PACKET_ACK, p->link);
}

static void on_ack(struct sim *s, const struct packet *p) {
	struct sim_link *l = &s->workers[p->dst].links[p->src];
	if (l->state == LINK_DIALING && l->number == p->link)
		set_up(s, p->dst, p->src, p->link);
	else if (l->number != p->link)
		send_bare(s, p->dst, p->src, PACKET_RST, p->link);
}

static void on_rst(struct sim *s, const struct packet *p) {
	struct sim_link *l = &s->workers[p->dst].links[p->src];
	if (l->number == p->link && l->state != LINK_DOWN)
		set_down(s, p->dst, p->src, l->state == LINK_DIALING);
}

/* ---- frames ---- */

static struct packet *frame_packet(int host, int to, const struct frame_header *h, const void *a, size_t na,
								   const void *b, size_t nb) {
	struct packet *p = packet_new(host, to, PACKET_FRAME, NULL, FRAME_HEADER_BYTES + na + nb);
	frame_header_encode(h, p->data);
	if (na > 0)
		memcpy(p->data + FRAME_HEADER_BYTES, a, na);
	if (nb > 0)
		memcpy(p->data + FRAME_HEADER_BYTES + na, b, nb);
	return p;
}

bool peers_has_room(const struct sim *s, int host, int to) {
	const struct sim_link *l = &s->workers[host].links[to];
	return l->n_queue < (int)(sizeof l->queue / sizeof l->queue[0]);
}

void peers_queue(struct sim *s, int host, int to, const struct frame_header *h, const void *a, size_t na, const void *b,
				 size_t nb) {
	struct sim_link *l = &s->workers[host].links[to];
	if (l->state != LINK_UP || !peers_has_room(s, host, to))
		return;
	struct frame_header tagged = *h;
	tagged.run_tag = run_tag(s);
	l->queue[l->n_queue++] = frame_packet(host, to, &tagged, a, na, b, nb);
}

/* When the line's queue is short enough for bulk to be begun, if nothing more enters it. */
static int64_t bulk_from_us(const struct sim *s, int host) {
	const struct net_node *line = &s->net.up[host];
	size_t frame_bytes = FRAME_HEADER_BYTES + s->opt.codec->encoded_bytes(s->global_config.chunks.chunk_elems);
	double frames_us = LINE_FRAMES * (double)frame_bytes / line->bytes_per_s * SIM_S;
	return line->busy_until_us - LINE_QUEUE_US - (int64_t)frames_us;
}

static bool line_is_full(struct sim *s, int host) {
	s->workers[host].line_was_full |= bulk_from_us(s, host) > s->now_us;
	return bulk_from_us(s, host) > s->now_us;
}

int64_t peers_deadline_us(const struct sim *s, int host) {
	return s->workers[host].line_was_full ? bulk_from_us(s, host) : INT64_MAX;
}

/* What the all-reduce has for a peer: PING and RESUME, and bulk where the line takes any. */
static bool pull(struct sim *s, int host, int index, struct reduce_msg *m) {
	struct reduce *r = s->workers[host].reduce;
	return line_is_full(s, host) ? reduce_send_control(r, s->now_us, index, m) : reduce_send(r, s->now_us, index, m);
}

/* The same of a withholder: what it lets out, with a PING that says that it waits. */
static bool next_message(struct sim *s, int host, int index, struct reduce_msg *m) {
	bool any = pull(s, host, index, m);
	while (any && host == s->withholder && m->type == s->withheld)
		any = pull(s, host, index, m);
	if (any && host == s->withholder && m->type == REDUCE_PING)
		m->waiting = 1;
	return any;
}

/* The first of a state transfer's frames, unless it is a piece and the line is full. */
static bool queue_may_go(struct sim *s, int host, const struct sim_link *l) {
	struct frame_header h;
	if (l->n_queue == 0)
		return false;
	frame_header_decode(l->queue[0]->data, &h);
	return !frame_is_bulk(h.type) || !line_is_full(s, host);
}

/* The next frame for a peer: the all-reduce's control and bulk, unless a state transfer waits. */
static struct packet *next_frame(struct sim *s, int host, int peer) {
	struct sim_worker *w = &s->workers[host];
	struct sim_link *l = &w->links[peer];
	if (queue_may_go(s, host, l)) {
		struct packet *first = l->queue[0];
		l->n_queue--;
		memmove(l->queue, l->queue + 1, (size_t)l->n_queue * sizeof l->queue[0]);
		return first;
	}
	int index = index_of(w, peer);
	struct reduce_msg m;
	if (index < 0 || !next_message(s, host, index, &m))
		return NULL;
	struct frame_header h = frame_reduce_encode(&m, run_tag(s));
	return frame_packet(host, peer, &h, m.data, m.data_bytes, NULL, 0);
}

static void pump_link(struct sim *s, int host, int peer) {
	struct sim_link *l = &s->workers[host].links[peer];
	while (l->state == LINK_UP && l->in_flight < WINDOW) {
		struct packet *p = next_frame(s, host, peer);
		if (p == NULL)
			return;
		faults_aim(s, host, 1, 2 * s->opt.delay_us);
		p->link = l->number;
		l->in_flight++;
		sim_send(s, p);
	}
}

static bool is_among(const struct member_ref *refs, int n, int host) {
	for (int i = 0; i < n; i++)
		if (sim_host_of_key(refs[i].key) == host)
			return true;
	return false;
}

/* As the real worker does: one that has the state also dials those who lack it. */
static bool is_named(const struct sim_worker *w, int peer) {
	const struct document *d = round_document(w->core);
	return d != NULL && (is_among(d->members, d->n_members, peer) || is_among(d->syncing, d->n_syncing, peer));
}

void peers_pump(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	w->line_was_full = false;
	for (int peer = 0; peer < s->opt.n_workers; peer++) {
		if (peer == host)
			continue;
		bool wanted = index_of(w, peer) >= 0 || fetch_wants_link(s, host, peer) || is_named(w, peer);
		if (wanted && w->links[peer].state == LINK_DOWN && s->now_us >= w->links[peer].redial_us)
			dial(s, host, peer);
		fetch_serve(s, host, peer);
		pump_link(s, host, peer);
	}
}

/* There is room in the sender's window again. */
static void acknowledge(struct sim *s, const struct packet *p) {
	struct sim_worker *sender = &s->workers[p->src];
	struct sim_link *l = &sender->links[p->dst];
	if (l->number != p->link || l->in_flight == 0)
		return;
	if (s->net.cut[p->dst][p->src] != 0) {
		send_bare(s, p->dst, p->src, PACKET_WINDOW, p->link);
		return;
	}
	l->in_flight--;
	sim_at(s, s->now_us, p->src, sender->life, wake, NULL);
}

static void on_window(struct sim *s, const struct packet *p) {
	struct sim_link *l = &s->workers[p->dst].links[p->src];
	if (l->number == p->link && l->in_flight > 0)
		l->in_flight--;
}

static void on_reduce_frame(struct sim *s, const struct packet *p, const struct frame_header *h, const uint8_t *body) {
	struct sim_worker *w = &s->workers[p->dst];
	int index = index_of(w, p->src);
	if (index < 0)
		return; /* this all-reduce is not ours (yet, or any more) */
	struct reduce_msg m;
	struct rv_errtext et = {0};
	frame_reduce_decode(h, body, &m);
	if (reduce_receive(w->reduce, s->now_us, index, &m, &et) != RV_OK)
		sim_fail(s, "w%d refuses a %s of w%d: %s", p->dst, frame_type_name(h->type), p->src, et.text);
}

static void on_frame(struct sim *s, const struct packet *p) {
	acknowledge(s, p);
	struct sim_link *l = &s->workers[p->dst].links[p->src];
	if (l->state != LINK_UP || l->number != p->link) {
		send_bare(s, p->dst, p->src, PACKET_RST, p->link);
		return;
	}
	struct frame_header h;
	frame_header_decode(p->data, &h);
	const char *why = frame_header_invalid(&h, run_tag(s), FRAME_LINK_OPEN);
	if (why != NULL || h.body_bytes != p->n - FRAME_HEADER_BYTES)
		sim_fail(s, "w%d refuses a frame of w%d: %s", p->dst, p->src, why != NULL ? why : "body length");
	else if (frame_is_reduce(h.type))
		on_reduce_frame(s, p, &h, p->data + FRAME_HEADER_BYTES);
	else
		fetch_receive(s, p->dst, p->src, &h, p->data + FRAME_HEADER_BYTES);
}

void peers_receive(struct sim *s, const struct packet *p) {
	const struct sim_worker *w = &s->workers[p->dst];
	if (w->core == NULL) { /* no process, or one that does not listen yet */
		if (w->dark)       /* nothing answers; TCP gives up in the end */
			peers_break_at(s, p->src, p->dst, p->link, s->now_us + TCP_TIMEOUT_US);
		else if (p->kind != PACKET_RST)
			send_bare(s, p->dst, p->src, PACKET_RST, p->link);
		return;
	}
	switch (p->kind) {
	case PACKET_SYN:
		on_syn(s, p);
		break;
	case PACKET_ACK:
		on_ack(s, p);
		break;
	case PACKET_RST:
		on_rst(s, p);
		break;
	case PACKET_WINDOW:
		on_window(s, p);
		break;
	default:
		on_frame(s, p);
	}
}

/* ---- the all-reduce ---- */

static size_t chunk_bytes(void *ctx, uint32_t chunk) {
	const struct sim_worker *w = ctx;
	return w->sim->opt.codec->encoded_bytes(chunking_len(&w->chunks, chunk));
}

static size_t chunk_offset(void *ctx, uint32_t chunk) {
	const struct sim_worker *w = ctx;
	return chunking_offset_bytes(&w->chunks, w->sim->opt.codec, chunk);
}

static enum rv_err chunk_reduce(void *ctx, uint32_t chunk, const uint8_t *const *in, const uint32_t *weights, int n_in,
								uint8_t *out, int *bad, struct rv_errtext *et) {
	const struct sim_worker *w = ctx;
	*bad = -1;
	const struct merge_rule rule = global_merge(&w->sim->global_config);
	return merge_chunk(&rule, in, weights, n_in, chunking_len(&w->chunks, chunk), w->sim->scratch, out, NULL, et);
}

static enum rv_err chunk_check(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et) {
	const struct sim_worker *w = ctx;
	return w->sim->opt.codec->decode(data, chunking_len(&w->chunks, chunk), w->sim->scratch, et);
}

/* What this worker sends when nothing goes wrong. */
static uint64_t expected_tx(struct sim_worker *w, const struct document *d) {
	uint64_t bytes = 0;
	for (int g = 0; g < d->n_ranges; g++)
		for (uint32_t c = d->ranges[g].first; c < d->ranges[g].first + d->ranges[g].count; c++) {
			bool mine = d->members[d->ranges[g].owner].member == w->member;
			bytes += (mine ? d->n_members - 1u : 1u) * (FRAME_HEADER_BYTES + chunk_bytes(w, c));
		}
	return bytes;
}

static void init_reduce(struct sim *s, int host, const struct document *d) {
	struct sim_worker *w = &s->workers[host];
	w->sim = s;
	w->chunks = global_round_chunks(&s->global_config, d->round);
	struct reduce_config cfg = {.self_member = w->member,
								.n_chunks = w->chunks.n_chunks,
								.codec = {.ctx = w,
										  .chunk_bytes = chunk_bytes,
										  .chunk_offset = chunk_offset,
										  .reduce = chunk_reduce,
										  .check = chunk_check},
								.silence_us = SILENCE_US,
								.stall_us = SIM_STALL_US,
								.ping_interval_us = PING_US};
	struct reduce_memory mem = {.own = w->own, .reduced = w->reduced, .flags = w->flags};
	for (int m = 0; m < SIM_MAX_WORKERS; m++)
		mem.held[m] = w->held[m];
	if (w->reduce_memory == NULL)
		w->reduce_memory = sim_alloc(reduce_size());
	w->reduce = reduce_init(w->reduce_memory, &cfg, &mem, d, s->now_us);
}

static void enter_attempt(struct sim *s, int host, const struct document *d) {
	struct sim_worker *w = &s->workers[host];
	w->reduce_round = d->round;
	w->reduce_attempt = d->attempt;
	w->expected_tx = expected_tx(w, d);
	for (int peer = 0; peer < SIM_MAX_WORKERS; peer++)
		w->roster_index[peer] = -1;
	for (int i = 0; i < d->n_members; i++)
		w->roster_index[sim_host_of_key(d->members[i].key)] = i;
	for (int peer = 0; peer < s->opt.n_workers; peer++)
		if (w->links[peer].state == LINK_UP)
			tell_reduce(s, host, peer, false);
	oracle_contribution(s, host);
}

/* ---- the session core's links ---- */

static void allow(void *ctx, const struct document *d) {
	const struct sim_worker *w = ctx; /* fetch_pump and peers_pump look at the latest document */
	uint64_t members = 0, syncing = 0;
	for (int i = 0; i < d->n_members; i++)
		members |= UINT64_C(1) << d->members[i].member;
	for (int i = 0; i < d->n_syncing; i++)
		syncing |= UINT64_C(1) << d->syncing[i].member;
	sim_say(w->sim, w->host, "follows document %llu: members %llx, behind %llx", (unsigned long long)d->seq,
			(unsigned long long)members, (unsigned long long)syncing);
}

static enum rv_err begin_reduce(void *ctx, const struct document *d, struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	(void)et;
	RV_ASSERT(w->reduce == NULL);
	init_reduce(w->sim, w->host, d);
	enter_attempt(w->sim, w->host, d);
	return RV_OK;
}

static void resume_reduce(void *ctx, const struct document *d) {
	struct sim_worker *w = ctx;
	reduce_restart(w->reduce, d, w->sim->now_us);
	enter_attempt(w->sim, w->host, d);
}

static void end_reduce(void *ctx) {
	struct sim_worker *w = ctx;
	if (w->sim->opt.calm)
		oracle_bytes(w->sim, w->host);
	w->reduce = NULL;
}

static struct blob *result(void *ctx) {
	const struct sim_worker *w = ctx;
	struct blob *b = blob_new(sim_payload(w->sim, w->reduce_round));
	RV_ASSERT(b != NULL);
	memcpy(b->data, w->reduced, b->bytes);
	return b;
}

/* Only the first is asked for: nothing is fetched ahead. */
static enum rv_err want(void *ctx, const struct state_id *ids, int n, struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	(void)et;
	fetch_want(w->sim, w->host, n > 0 ? &ids[0] : NULL);
	return RV_OK;
}

static bool nowhere(void *ctx) {
	const struct sim_worker *w = ctx;
	return fetch_nowhere(w->sim, w);
}

static void forget(void *ctx, enum state_kind kind, uint64_t round) {
	(void)ctx;
	(void)kind;
	(void)round; /* every piece is read anew */
}

static void forget_all(void *ctx) {
	(void)ctx;
}

static uint64_t askers(void *ctx) {
	const struct sim_worker *w = ctx;
	uint64_t members = 0;
	for (int peer = 0; peer < w->sim->opt.n_workers; peer++)
		if (w->askers >> peer & 1)
			members |= UINT64_C(1) << w->sim->oracle.member_of[peer];
	return members;
}

static uint64_t given_bytes(void *ctx) {
	return ((struct sim_worker *)ctx)->given_bytes;
}

const struct session_links_ops sim_links_ops = {.allow = allow,
												.reduce_start = begin_reduce,
												.reduce_restart = resume_reduce,
												.reduce_stop = end_reduce,
												.result = result,
												.want = want,
												.nowhere = nowhere,
												.forget = forget,
												.forget_all = forget_all,
												.askers = askers,
												.given_bytes = given_bytes};

struct session_seen peers_seen(const struct sim_worker *w) {
	if (w->reduce == NULL)
		return (struct session_seen){.reducing = false};
	return (struct session_seen){.reducing = true,
								 .reduced = reduce_done(w->reduce),
								 .reduce_round = w->reduce_round,
								 .reduce_attempt = w->reduce_attempt,
								 .suspects = reduce_suspects(w->reduce)};
}
