/* peers.c: life of the mesh: its file descriptors, its time, its dead links (net/mesh/peers.h,
 * net/mesh/state.h). */
#include "net/mesh/peers.h"

#include "base/assert.h"
#include "net/mesh/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MS = 1000,
	S = 1000 * MS,
	TROUBLE_WINDOW_US = 10 * S,
	TROUBLES_PER_WINDOW = 30,
	MET_US = 60 * S, /* after this a link that has ended says nothing of routers */
	APART_US = 3 * S /* two that can meet are linked within this, as a rule: some dials of both, and their pauses */
};

/* ---- life ---- */

static void or_default(int64_t *value, int64_t fallback) {
	if (*value == 0)
		*value = fallback;
}

static void set_defaults(struct peers_config *cfg) {
	or_default(&cfg->connect_us, 5 * (int64_t)S);
	or_default(&cfg->greeting_us, 10 * (int64_t)S);
	or_default(&cfg->redial_min_us, 100 * MS);
	or_default(&cfg->redial_max_us, 15 * (int64_t)S);
	or_default(&cfg->courtesy_us, 250 * MS);
	or_default(&cfg->guest_idle_us, 60 * (int64_t)S);
	or_default(&cfg->silent_us, 5 * (int64_t)S);
	if (cfg->courtesy_us < 0)
		cfg->courtesy_us = 0;
}

enum rv_err peers_new(const struct peers_config *cfg, struct peers **out, struct rv_errtext *et) {
	*out = NULL;
	struct peers *p = calloc(1, sizeof *p);
	if (p == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the mesh");
	p->cfg = *cfg;
	set_defaults(&p->cfg);
	p->net = cfg->pipe != NULL ? *cfg->pipe : socket_pipe;
	p->stream = cfg->stream != NULL ? cfg->stream : &tls_stream;
	p->listen_fd = -1;
	p->run_tag = frame_run_tag(cfg->run_id);
	p->rng = rv_rng_of(cfg->rng_seed, cfg->self_member);
	p->up = rate_of(cfg->max_up, 0);
	p->down = rate_of(cfg->max_down, 0);
	p->pace.again_us = INT64_MAX;
	p->met = ADDRESS_LOOPBACK;
	enum rv_err e = p->stream->setup(cfg->identity, &p->stream_shared, et);
	if (e == RV_OK && cfg->listen != NULL)
		e = p->net.listen(p->net.ctx, cfg->listen, peers_receive_bytes(p), &p->listen_fd, &p->port, et);
	if (e != RV_OK) {
		peers_free(p);
		return e;
	}
	*out = p;
	return RV_OK;
}

enum rv_err peers_check_listen(const char *listen, struct rv_errtext *et) {
	uint16_t port;
	int fd;
	RV_TRY(socket_pipe.listen(NULL, listen, 0, &fd, &port, et));
	socket_pipe.close(NULL, fd);
	return RV_OK;
}

/* Listens again on the port that it has, as a buffer's size is that of the listener. */
static enum rv_err listen_again(struct peers *p, struct rv_errtext *et) {
	struct address at;
	char text[NET_ADDR_BYTES];
	RV_TRY(address_parse(p->cfg.listen, &at, et));
	at.port = p->port;
	if (!address_format(&at, text))
		return rv_fail(et, RV_E_RANGE, "%s: the address is too long", p->cfg.listen);
	p->net.close(p->net.ctx, p->listen_fd);
	p->listen_fd = -1;
	return p->net.listen(p->net.ctx, text, peers_receive_bytes(p), &p->listen_fd, &p->port, et);
}

/* Ends all links, which come about anew. */
static void renew_links(struct peers *p) {
	p->depth++;
	for (int i = 0; i < p->n_slots; i++)
		if (p->links[i] != NULL)
			link_end(p->links[i], false, RV_E_CANCELLED, "the cap on the download is another one");
	p->depth--;
	peers_reap(p);
}

enum rv_err peers_set_caps(struct peers *p, int64_t now_us, int64_t max_up, int64_t max_down, struct rv_errtext *et) {
	const int buffer_bytes = peers_receive_bytes(p);
	p->now_us = now_us;
	if (max_up != p->up.bytes_per_s)
		p->up = rate_of(max_up, now_us);
	if (max_down != p->down.bytes_per_s)
		p->down = rate_of(max_down, now_us);
	if (peers_receive_bytes(p) == buffer_bytes)
		return RV_OK;
	const enum rv_err e = p->listen_fd >= 0 ? listen_again(p, et) : RV_OK;
	renew_links(p);
	return e;
}

void peers_charge(struct peers *p, uint64_t tx_bytes, uint64_t rx_bytes) {
	rate_charge(&p->up, (size_t)tx_bytes);
	rate_charge(&p->down, (size_t)rx_bytes);
}

static void close_link(struct peers *p, struct link *l) {
	if (l != NULL)
		p->net.close(p->net.ctx, l->fd);
	link_free(l);
}

void peers_free(struct peers *p) {
	if (p == NULL)
		return;
	RV_ASSERT(p->depth == 0);
	for (int i = 0; i < p->n_slots; i++) {
		struct link *l = p->links[i];
		if (l != NULL && l->state == LINK_OPEN) {
			link_put_bye(l, "leaving");
			peers_flush(p, l);
		}
		close_link(p, l);
	}
	if (p->listen_fd >= 0)
		p->net.close(p->net.ctx, p->listen_fd);
	p->stream->teardown(p->stream_shared);
	peers_free_members(p);
	free(p);
}

/* ---- links ---- */

/* Limits how many are reported: strangers decide how often this happens, and a log must not grow at
 * their will. */
void peers_trouble(struct peers *p, const struct link *l, enum rv_err why, const char *text) {
	struct rv_errtext et;
	if (p->cfg.owner.on_trouble == NULL)
		return;
	if (p->now_us >= p->trouble_until_us) {
		p->trouble_until_us = p->now_us + TROUBLE_WINDOW_US;
		p->troubles = 0;
	}
	if (++p->troubles > TROUBLES_PER_WINDOW)
		return;
	rv_fail(&et, why, "%s%s%s%s", l != NULL ? l->label : "", l != NULL ? ": " : "", text,
			p->troubles == TROUBLES_PER_WINDOW ? " (further ones are not logged for a while)" : "");
	p->cfg.owner.on_trouble(p->cfg.owner.ctx, why, et.text);
}

void peers_tune(struct peers *p, int fd) {
	const char *congestion = p->cfg.congestion != NULL ? p->cfg.congestion : PEERS_CONGESTION;
	p->net.tune(p->net.ctx, fd);
	p->net.control_congestion(p->net.ctx, fd, congestion, p->congestion);
}

struct link *peers_add_link(struct peers *p, int fd, enum frame_role role, enum path_kind path) {
	struct rv_errtext et = {0};
	struct link *l = NULL;
	int slot = 0;
	while (slot < PEERS_MAX_LINKS && p->links[slot] != NULL)
		slot++;
	if (slot == PEERS_MAX_LINKS) {
		p->net.close(p->net.ctx, fd);
		peers_trouble(p, NULL, RV_E_FULL, "a connection was closed: the mesh has all the links it can have");
		return NULL;
	}
	enum rv_err e = link_new(p->stream, p->stream_shared, fd, role, path, p->run_tag, &l, &et);
	if (e != RV_OK) {
		p->net.close(p->net.ctx, fd);
		peers_trouble(p, NULL, e, et.text);
		return NULL;
	}
	l->begun_us = p->now_us;
	p->links[slot] = l;
	p->n_slots = slot < p->n_slots ? p->n_slots : slot + 1;
	if (path == PATH_ACCEPTED)
		peers_tune(p, fd);
	return l;
}

static void add_traffic(struct peers_traffic *to, const struct peers_traffic *more) {
	to->tx_bytes += more->tx_bytes;
	to->rx_bytes += more->rx_bytes;
	to->tx_frames += more->tx_frames;
	to->rx_frames += more->rx_frames;
}

void peers_count(struct peers *p, struct link *l) {
	add_traffic(&p->total, &l->traffic);
	if (l->path == PATH_RELAYED)
		add_traffic(&p->relayed, &l->traffic);
	l->traffic = (struct peers_traffic){0};
}

/* Reports to the owner that a link by one of its routes, or the attempt at it, is over. */
static void peers_route_ended(struct peers *p, const struct link *l) {
	if (p->cfg.owner.on_route_end == NULL || l->member == NET_NO_MEMBER || l->inbound || l->path == PATH_DIALED)
		return;
	int64_t lived_us = l->was_open ? p->now_us - l->opened_us : -1;
	p->cfg.owner.on_route_end(p->cfg.owner.ctx, l->member, &l->route, lived_us, !l->deliberate && !l->quiet);
}

/* Reports the end of a dead link, and leaves no pointer to it. */
static void mourn(struct peers *p, struct link *l) {
	struct peer *peer = peers_find(p, l->member);
	if (peer != NULL && peer->link == l) {
		peer->link = NULL;
		peer->refused = l->refused ? l->path : PATH_NONE;
		peer->alone_us = peer->used_us = p->now_us;
		peers_dial_again(p, peer, l);
		p->cfg.owner.on_link_down(p->cfg.owner.ctx, l->member, l->fatal, l->why, l->reason.text);
		return;
	}
	if (!l->quiet && !l->was_open)
		peers_trouble(p, l, l->why, l->reason.text);
	if (peer != NULL && peer->dialing == l) {
		peer->dialing = NULL;
		peers_dial_failed(p, peer, &l->route.at, l->why, l->reason.text);
	}
	if (peer != NULL && peer->calling == l) {
		peer->calling = NULL;
		if (l->path == PATH_PUNCHED)
			peers_ask_next_way(peer, l->quiet ? peer->punch.until_us : p->now_us);
		else
			peers_ask_again(p, peer, 0);
	}
}

static void bury(struct peers *p, struct link *l) {
	if (l->say_bye)
		link_put_bye(l, l->reason.text);
	peers_flush(p, l);
	p->depth++;
	mourn(p, l);
	peers_route_ended(p, l);
	p->depth--;
	close_link(p, l);
}

void peers_reap(struct peers *p) {
	if (p->depth > 0)
		return;
	for (bool found = true; found;) { /* the owner's answer to one death may be another */
		found = false;
		for (int i = 0; i < p->n_slots; i++) {
			struct link *l = p->links[i];
			if (l == NULL || l->state != LINK_DEAD)
				continue;
			p->links[i] = NULL;
			bury(p, l);
			found = true;
		}
	}
	peers_free_dropped(p);
}

/* ---- the loop ---- */

static bool waits(const struct peers *p, const struct rate *r) {
	return rate_ready_us(r) > p->now_us;
}

/* Returns the events that a link waits for at its socket. A link that waits for a cap does not ask:
 * it is ready anyway. */
static short events_of(const struct peers *p, const struct link *l) {
	if (l->state == LINK_CONNECTING)
		return l->connect_events;
	bool writes = stream_pending(&l->stream) > 0 && !(l->bulk_pending && waits(p, &p->up));
	bool reads = l->state != LINK_OPEN || !waits(p, &p->down);
	return (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

int peers_pollfds(struct peers *p, struct pollfd *fds, int cap) {
	int n = 0;
	if (p->listen_fd >= 0 && n < cap && p->accept_again_us == 0)
		fds[n++] = (struct pollfd){.fd = p->listen_fd, .events = POLLIN};
	for (int i = 0; i < p->n_slots; i++) {
		struct link *l = p->links[i];
		if (l == NULL)
			continue;
		l->poll_slot = -1;
		if (n == cap)
			continue;
		short events = events_of(p, l);
		if (events == 0)
			continue;
		l->poll_slot = n;
		fds[n++] = (struct pollfd){.fd = l->fd, .events = events};
	}
	return n;
}

static bool is_wanted(const struct peers *p, const struct link *l) {
	const struct peer *peer = peers_find(p, l->member);
	return peer != NULL && peer->wanted;
}

static int64_t link_deadline_us(const struct peers *p, const struct link *l) {
	if (l->state == LINK_DEAD)
		return p->now_us;
	if (l->state < LINK_OPEN)
		return l->turn_us != 0 && l->turn_us < l->deadline_us ? l->turn_us : l->deadline_us;
	return is_wanted(p, l) ? INT64_MAX : l->last_rx_us + p->cfg.guest_idle_us;
}

static int64_t earlier(int64_t a, int64_t b) {
	return a < b ? a : b;
}

int64_t peers_deadline_us(const struct peers *p) {
	int64_t deadline = earlier(peers_dial_deadline_us(p), peers_offers_deadline_us(p));
	if (p->accept_again_us != 0)
		deadline = earlier(deadline, p->accept_again_us);
	deadline = earlier(deadline, peers_pace_deadline_us(p));
	if (waits(p, &p->up))
		deadline = earlier(deadline, rate_ready_us(&p->up));
	if (waits(p, &p->down))
		deadline = earlier(deadline, rate_ready_us(&p->down));
	for (int i = 0; i < p->n_slots; i++) {
		const struct link *l = p->links[i];
		if (l != NULL)
			deadline = earlier(earlier(deadline, peers_rest_deadline_us(p, l)),
							   earlier(link_deadline_us(p, l), peers_watch_deadline_us(p, l)));
	}
	return deadline;
}

static void time_out(struct peers *p, struct link *l) {
	static const char *const late[] = {
		[LINK_CONNECTING] = "no answer to the connection request",
		[LINK_TLS] = "the TLS handshake did not end in time",
		[LINK_GREETING] = "no hello in time",
	};
	peers_turn_due(p, l);
	if (l->state == LINK_DEAD || link_deadline_us(p, l) > p->now_us)
		return;
	if (l->state == LINK_OPEN)
		link_end(l, false, RV_E_CANCELLED, "idle, and no longer in the roster");
	else if (l->state == LINK_CONNECTING && l->connect_events == POLLIN)
		link_kill(l, false, RV_E_TIMEOUT, "the other side did not come to the relay in time");
	else
		link_kill(l, false, RV_E_TIMEOUT, "%s", late[l->state]);
}

static void pump_all(struct peers *p) {
	p->depth++;
	peers_pump_links(p);
	p->depth--;
	peers_reap(p);
}

void peers_pump(struct peers *p, int64_t now_us) {
	RV_ASSERT(p->depth == 0);
	p->now_us = now_us;
	pump_all(p);
}

static void serve_ready(struct peers *p, const struct pollfd *fds, int n) {
	for (int i = 0; i < n; i++)
		if (p->listen_fd >= 0 && fds[i].fd == p->listen_fd && fds[i].revents != 0)
			peers_accept(p);
	int turn = p->down_turn;
	for (int i = 0; i < p->n_slots; i++) {
		struct link *l = p->links[(turn + i) % p->n_slots];
		if (l == NULL || l->poll_slot < 0 || l->poll_slot >= n)
			continue;
		RV_ASSERT(fds[l->poll_slot].fd == l->fd);
		short revents = fds[l->poll_slot].revents;
		l->poll_slot = -1;
		if (revents == 0)
			continue;
		uint64_t before = p->total.rx_bytes;
		peers_service(p, l, revents);
		if (p->total.rx_bytes != before)
			p->down_turn = (turn + i + 1) % p->n_slots;
	}
}

void peers_handle(struct peers *p, int64_t now_us, const struct pollfd *fds, int n) {
	RV_ASSERT(p->depth == 0);
	p->now_us = now_us;
	p->depth++;
	if (p->accept_again_us != 0 && now_us >= p->accept_again_us)
		p->accept_again_us = 0;
	serve_ready(p, fds, n);
	for (int i = 0; i < p->n_slots; i++)
		if (p->links[i] != NULL)
			time_out(p, p->links[i]);
	peers_dial_due(p);
	peers_offers_due(p);
	p->depth--;
	peers_reap(p);
	pump_all(p);
}

/* ---- getters ---- */

uint16_t peers_port(const struct peers *p) {
	return p->port;
}

static bool is_linked(const struct peer *peer) {
	return peer != NULL && peer->link != NULL && peer->link->state == LINK_OPEN;
}

bool peers_linked(const struct peers *p, uint32_t member) {
	return is_linked(peers_find(p, member));
}

static enum path_kind path_to(const struct peers *p, const struct peer *peer) {
	if (is_linked(peer))
		return peer->link->path;
	bool apart = peer != NULL && peer->wanted && p->now_us - peer->alone_us >= APART_US;
	return apart ? PATH_APART : PATH_NONE;
}

/* Returns true if the link that this worker ended was there not long ago: since then a router may
 * be in the way. */
static bool is_refused(const struct peers *p, const struct peer *peer) {
	return peer != NULL && peer->wanted && !is_linked(peer) && peer->refused != PATH_NONE &&
		   p->now_us - peer->alone_us < MET_US;
}

enum path_kind peers_path(const struct peers *p, uint32_t member) {
	return path_to(p, peers_find(p, member));
}

int peers_list(const struct peers *p, uint32_t members[NET_MAX_PEERS]) {
	for (int i = 0; i < p->n_members; i++)
		members[i] = p->members[i]->member;
	return p->n_members;
}

struct peers_way peers_way(const struct peers *p, uint32_t member) {
	const struct peer *peer = peers_find(p, member);
	struct peers_way way = {.path = path_to(p, peer)};
	if (is_refused(p, peer))
		way.path = peer->refused;
	if (!is_linked(peer) || way.path == PATH_RELAYED)
		return way;
	const struct link *l = peer->link;
	const struct address *there = l->inbound ? &l->from : &l->route.at;
	way.ipv6 = strchr(there->host, ':') != NULL;
	way.lan = address_reach(there) != ADDRESS_PUBLIC;
	way.candidate = l->candidate;
	return way;
}

uint8_t peers_way_byte(struct peers_way way) {
	return (uint8_t)(way.path | (way.lan ? PATH_LAN : 0) | (way.ipv6 ? PATH_IPV6 : 0));
}

int64_t peers_met_after_us(const struct peers *p, uint32_t member) {
	const struct peer *peer = peers_find(p, member);
	RV_ASSERT(is_linked(peer));
	return peer->wanted && peer->link->opened_us > peer->alone_us ? peer->link->opened_us - peer->alone_us : 0;
}

struct peers_traffic peers_total(const struct peers *p) {
	return p->total;
}

struct peers_traffic peers_relayed(const struct peers *p) {
	return p->relayed;
}

uint64_t peers_delivered(const struct peers *p) {
	return p->pace.delivered;
}
