/* io.c: between the pipes and the links, and the pull of outgoing messages (net/mesh/state.h). */
#include "net/mesh/state.h"

#include "base/planted.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	ACCEPT_BATCH = 16,
	ACK_SHARE = 40, /* bytes for which one byte of acknowledgements comes back: 66 for two full packets */
	US_PER_S = 1000 * 1000,
	RECEIVE_SHARE_US = 50 * 1000, /* of a capped download, for each link */
	RECEIVE_MIN_BYTES = 1 << 13,
	RECEIVE_MAX_BYTES = 1 << 22,
	SHARE_BYTES = 1 << 20,        /* read from one link before the next has its turn */
	ACCEPT_PAUSE_US = 1000 * 1000 /* without file descriptors, accepting again at once would only spin */
};

/* ---- incoming connections ---- */

static bool is_pending(const struct link *l) {
	return l != NULL && l->inbound && (l->state == LINK_TLS || l->state == LINK_GREETING);
}

static int pending_from(const struct peers *p, const char *site) {
	int n = 0;
	for (int i = 0; i < p->n_slots; i++)
		n += is_pending(p->links[i]) && (site == NULL || strcmp(p->links[i]->site, site) == 0);
	return n;
}

/* Returns true if `a`, which holds n_a pending connections with its site, makes way before `b`. */
static bool makes_way(const struct link *a, int n_a, const struct link *b, int n_b) {
	if (a->known_site != b->known_site)
		return b->known_site;
	return n_a != n_b ? n_a > n_b : a->deadline_us < b->deadline_us;
}

/* Ends a pending connection: of a site where no member is known, if there are any, and of these the
 * oldest of the site that holds the most. So a host that floods pushes out itself, and strangers of
 * many hosts, however fast they come, push out each other: a member whose handshake takes long
 * keeps its place. */
static void evict_pending(struct peers *p) {
	struct link *victim = NULL;
	int most = 0;
	for (int i = 0; i < p->n_slots; i++) {
		struct link *l = p->links[i];
		if (!is_pending(l))
			continue;
		int n = pending_from(p, l->site);
		if (victim == NULL || makes_way(l, n, victim, most)) {
			most = n;
			victim = l;
		}
	}
	if (victim != NULL)
		link_kill(victim, false, RV_E_FULL, "no hello yet, and %d newer connections wait too", PEERS_MAX_PENDING);
}

/* Returns true if a member has stated an address of the site. */
static bool is_known_site(const struct peers *p, const char *site) {
	char of_member[NET_ADDR_BYTES];
	for (int i = 0; i < p->n_members; i++)
		for (int k = 0; k < p->members[i]->book.n; k++) {
			address_site(p->members[i]->book.entries[k].at.host, of_member);
			if (strcmp(of_member, site) == 0)
				return true;
		}
	return false;
}

static void admit(struct peers *p, int fd, const struct address *from) {
	if (pending_from(p, NULL) >= PEERS_MAX_PENDING)
		evict_pending(p);
	struct link *l = peers_add_link(p, fd, FRAME_LISTENER, PATH_ACCEPTED);
	if (l == NULL)
		return;
	char text[NET_ADDR_BYTES];
	address_format(from, text);
	snprintf(l->label, sizeof l->label, "connection from %s", text);
	l->from = *from;
	address_site(from->host, l->site);
	l->known_site = is_known_site(p, l->site);
	l->deadline_us = p->now_us + p->cfg.greeting_us;
	peers_admit_punched(p, l);
}

void peers_accept(struct peers *p) {
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		struct address from;
		int fd = p->net.accept(p->net.ctx, p->listen_fd, &from);
		if (fd >= 0 && p->paused) {
			p->net.close(p->net.ctx, fd);
			continue;
		}
		if (fd >= 0) {
			admit(p, fd, &from);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			struct rv_errtext et;
			enum rv_err why = rv_fail_errno(&et, errno, "cannot accept peers for a second");
			p->accept_again_us = p->now_us + ACCEPT_PAUSE_US;
			peers_trouble(p, NULL, why, et.text);
		}
		return;
	}
}

/* ---- bytes ---- */

static void lost(struct link *l, int error) {
	bool timeout = error == ETIMEDOUT;
	link_kill(l, false, timeout ? RV_E_TIMEOUT : RV_E_CLOSED, "connection lost: %s", strerror(error));
	l->say_bye = false;
}

int peers_receive_bytes(const struct peers *p) {
	int64_t share = p->down.bytes_per_s * RECEIVE_SHARE_US / US_PER_S;
	if (!rate_is_capped(&p->down))
		return 0;
	return (int)(share < RECEIVE_MIN_BYTES ? RECEIVE_MIN_BYTES : share > RECEIVE_MAX_BYTES ? RECEIVE_MAX_BYTES : share);
}

/* Returns the bytes that may be read now. Under a cap a link gets a part of the tokens before the
 * next one has its turn. Before it is open it does not wait: that is little, and has a deadline. */
static size_t readable(struct peers *p, const struct link *l) {
	size_t allowed = rate_allowed(&p->down, p->now_us);
	if (l->state != LINK_OPEN || allowed >= sizeof p->rx)
		return sizeof p->rx;
	return allowed;
}

static void note_part(struct peers *p, struct link *l, size_t n) {
	const struct peers_owner *owner = &p->cfg.owner;
	l->part_rx += n;
	if (l->state != LINK_OPEN || l->part_rx < PEERS_PART_BYTES)
		return;
	l->part_rx = 0;
	l->last_rx_us = p->now_us;
	uint8_t type = l->whole_got > 0 ? l->whole.type : l->header.type;
	bool unknown = l->whole_got == 0 && l->head_got < FRAME_HEADER_BYTES; /* its first TLS record is not whole either */
	if (owner->on_part != NULL)
		owner->on_part(owner->ctx, l->member, unknown || (frame_is_bulk(type) && frame_is_reduce(type)));
}

/* Returns true if the other side has asked for nothing but this one's key (net/mesh/probe.h). */
static bool is_probe(const struct link *l) {
	return l->path == PATH_ACCEPTED && l->state == LINK_GREETING && l->head_got == 0;
}

static void fill(struct peers *p, struct link *l) {
	const struct link_handler handler = {p, peers_on_secured, peers_on_frame};
	for (size_t share = 0; share < SHARE_BYTES && l->state != LINK_DEAD;) {
		size_t most = readable(p, l);
		if (most == 0)
			return;
		ssize_t n = p->net.read(p->net.ctx, l->fd, p->rx, most);
		if (n < 0) {
			if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
				lost(l, errno);
			return;
		}
		if (n == 0) {
			link_kill(l, false, RV_E_CLOSED, "the other side closed the connection without BYE");
			l->say_bye = false;
			return;
		}
		l->traffic.rx_bytes += (uint64_t)n;
		l->alive_us = p->now_us;
		rate_charge(&p->down, (size_t)n);
		rate_charge(&p->up, (size_t)n / ACK_SHARE);
		share += (size_t)n;
		struct rv_errtext et = {0};
		enum rv_err e = link_receive(l, p->rx, (size_t)n, &handler, &et);
		l->quiet = l->quiet || (e == RV_E_CLOSED && is_probe(l));
		if (e != RV_OK)
			link_kill(l, e != RV_E_CLOSED && e != RV_E_NOMEM, e, "%s", et.text);
		note_part(p, l, (size_t)n);
		if ((size_t)n < sizeof p->rx)
			return;
	}
}

bool peers_drain(struct peers *p, struct link *l) {
	while (stream_pending(&l->stream) > 0) {
		size_t most = l->bulk_pending ? rate_allowed(&p->up, p->now_us) : SIZE_MAX;
		if (most == 0)
			return false;
		size_t pending = stream_pending(&l->stream);
		ssize_t n = p->net.write(p->net.ctx, l->fd, l->stream.out + l->stream.out_at, pending < most ? pending : most);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN && errno != EWOULDBLOCK)
				lost(l, errno);
			return false;
		}
		stream_sent(&l->stream, (size_t)n);
		l->wrote = true;
		l->traffic.tx_bytes += (uint64_t)n;
		if (!RV_BUG("cap-uncharged"))
			rate_charge(&p->up, (size_t)n);
		rate_charge(&p->down, (size_t)n / ACK_SHARE);
	}
	l->bulk_pending = false;
	return true;
}

void peers_flush(struct peers *p, struct link *l) {
	(void)peers_drain(p, l);
	peers_count(p, l);
}

static void connected(struct peers *p, struct link *l) {
	struct rv_errtext et = {0};
	enum rv_err e = p->net.connected(p->net.ctx, l->fd, &l->route, &l->connect_events, &et);
	if (e == RV_E_BUSY)
		return;
	if (e == RV_OK) {
		peers_tune(p, l->fd);
		l->deadline_us = p->now_us + p->cfg.greeting_us;
		e = link_start_tls(l, &et);
	}
	if (e != RV_OK)
		link_kill(l, false, e, "%s", et.text);
}

void peers_service(struct peers *p, struct link *l, short revents) {
	if (l->state == LINK_CONNECTING) {
		if (revents != 0)
			connected(p, l);
	} else if (l->state != LINK_DEAD && (revents & (POLLIN | POLLERR | POLLHUP)) != 0) {
		fill(p, l);
	}
	/* Answers of the handshake, or bytes that the socket did not take before; peers_reap sends BYE
	 * on dead links. */
	if (l->state != LINK_DEAD && l->state != LINK_CONNECTING)
		(void)peers_drain(p, l);
	peers_count(p, l);
}

/* ---- the pull ---- */

static bool is_put(struct link *l, enum rv_err e, const struct rv_errtext *et) {
	if (e != RV_OK)
		link_kill(l, false, e, "cannot send a frame: %s", et->text);
	return e == RV_OK;
}

bool peers_put(struct link *l, const struct peers_message *m) {
	struct rv_errtext et = {0};
	if (l->state != LINK_OPEN) /* dropped by the owner meanwhile */
		return false;
	/* Any frame but PING keeps its place behind the frame that was begun. */
	if (link_is_cut(l) && !frame_is_ping(m->header.type) && !peers_put_slice(l, SIZE_MAX))
		return false;
	return is_put(l, link_put(l, m, &et), &et);
}

bool peers_put_sliced(struct link *l, const struct peers_message *m, size_t bytes) {
	struct rv_errtext et = {0};
	return l->state == LINK_OPEN && is_put(l, link_cut(l, m, &et), &et) && peers_put_slice(l, bytes);
}

bool peers_put_slice(struct link *l, size_t bytes) {
	struct rv_errtext et = {0};
	l->bulk_pending = true;
	return is_put(l, link_put_slice(l, bytes, &et), &et);
}
