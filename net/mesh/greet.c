/* greet.c: which peers may come in: HELLO both ways, members and tickets, which link of a pair
 * stays (net/mesh/state.h). */
#include "net/mesh/state.h"

#include "base/assert.h"
#include "base/planted.h"
#include "net/identity.h"

#include <stdio.h>
#include <string.h>

bool peers_self_is_lower(const struct peers *p, const uint8_t key[NET_KEY_BYTES]) {
	return memcmp(p->cfg.identity->key, key, NET_KEY_BYTES) < 0;
}

/* Returns the member with that key, if a roster has given it; NULL: none. */
static const struct peer *known_by_key(const struct peers *p, const uint8_t key[NET_KEY_BYTES]) {
	for (int i = 0; i < p->n_members; i++)
		if (p->members[i]->known && memcmp(p->members[i]->key, key, NET_KEY_BYTES) == 0)
			return p->members[i];
	return NULL;
}

static enum rv_err say_hello(struct peers *p, struct link *l, struct rv_errtext *et) {
	struct frame_hello hello = {.protocol = FRAME_VERSION, .role = (uint8_t)l->role, .member = p->cfg.self_member};
	uint8_t message[FRAME_HELLO_SIGNED_BYTES], body[FRAME_HELLO_BYTES];
	if (!link_hello_signed(l, p->cfg.run_id, l->role, message))
		return rv_fail(et, RV_E_UNSUPPORTED, "TLS gives no exporter value");
	memcpy(hello.run_id, p->cfg.run_id, sizeof hello.run_id);
	memcpy(hello.ticket, p->cfg.ticket, sizeof hello.ticket);
	identity_sign(p->cfg.identity, message, sizeof message, hello.signature);
	frame_hello_encode(&hello, body);
	struct peers_message m = {
		.header = frame_header_of(FRAME_HELLO, l->run_tag, sizeof body), .part = {body}, .part_bytes = {sizeof body}};
	return link_put(l, &m, et);
}

/* Returns true if `l` would replace a relayed link that delivers while paths are kept. Found out
 * before HELLO is out, so that both ends keep the relayed one. */
static bool is_too_soon(const struct peers *p, const struct link *l) {
	const struct peer *peer = l->member != NET_NO_MEMBER ? peers_find(p, l->member) : known_by_key(p, l->key);
	const struct link *open = peer != NULL ? peer->link : NULL;
	return p->keeps_paths && l->path != PATH_RELAYED && open != NULL && open->path == PATH_RELAYED &&
		   peers_is_fresh(p, open) && !peers_doubts(p, peer);
}

enum rv_err peers_on_secured(void *ctx, struct link *l, struct rv_errtext *et) {
	struct peers *p = ctx;
	char name[IDENTITY_SHORT_BYTES], expected[IDENTITY_SHORT_BYTES];
	identity_short(l->key, name);
	if (memcmp(l->key, p->cfg.identity->key, NET_KEY_BYTES) == 0)
		return rv_fail(et, RV_E_AUTH, "the other side has our own key: is the worker's directory in use twice?");
	struct peer *peer = peers_find(p, l->member);
	if (peer != NULL) {
		identity_short(peer->key, expected);
		if (memcmp(l->key, peer->key, NET_KEY_BYTES) != 0)
			return rv_fail(et, RV_E_AUTH, "key %s... answers there, the roster says %s...", name, expected);
		if (l->path == PATH_DIALED)
			book_answered(&peer->book, &l->route.at);
	}
	if (is_too_soon(p, l)) {
		l->quiet = true;
		link_kill(l, false, RV_E_CLOSED, "duplicate: the relayed link stays until this attempt is over");
		return RV_OK;
	}
	return say_hello(p, l, et);
}

/* ---- the other side's HELLO ---- */

static enum rv_err check_hello(const struct peers *p, const struct link *l, const struct frame_hello *hello,
							   struct rv_errtext *et) {
	enum frame_role expected = l->role == FRAME_DIALER ? FRAME_LISTENER : FRAME_DIALER;
	uint8_t message[FRAME_HELLO_SIGNED_BYTES];
	if (hello->protocol != FRAME_VERSION)
		return rv_fail(et, RV_E_PROTOCOL, "hello: peer protocol version %u, ours is %d: update the older program",
					   hello->protocol, FRAME_VERSION);
	if (memcmp(hello->run_id, p->cfg.run_id, NET_RUN_ID_BYTES) != 0)
		return rv_fail(et, RV_E_AUTH, "hello: it is of another run");
	if (hello->role != expected)
		return rv_fail(et, RV_E_PROTOCOL, "hello: role = %u, must be %u", hello->role, expected);
	if (!link_hello_signed(l, p->cfg.run_id, expected, message))
		return rv_fail(et, RV_E_UNSUPPORTED, "TLS gives no exporter value");
	if (!identity_verify(l->key, message, sizeof message, hello->signature))
		return rv_fail(et, RV_E_AUTH, "hello: the signature is not of this connection (replayed, or a wrong key)");
	return RV_OK;
}

void peers_serve_by(struct peers *p, const uint8_t serving_key[NET_KEY_BYTES], const uint8_t ticket[NET_SIG_BYTES]) {
	memcpy(p->cfg.serving_key, serving_key, NET_KEY_BYTES);
	memcpy(p->cfg.ticket, ticket, NET_SIG_BYTES);
}

/* Finds the member of the link's key: by the roster, or, for any other key, by the run's ticket for
 * the number that it claims. Refuses a banned member. */
static enum rv_err find_member(const struct peers *p, const struct link *l, const struct frame_hello *hello,
							   uint32_t *member, struct rv_errtext *et) {
	char name[IDENTITY_SHORT_BYTES];
	identity_short(l->key, name);
	const struct peer *known = known_by_key(p, l->key), *claimed = peers_find(p, hello->member);
	if (hello->member == p->cfg.self_member)
		return rv_fail(et, RV_E_AUTH, "hello: key %s... claims our own member number %u", name, hello->member);
	if (known != NULL && known->member != hello->member && !RV_BUG("greet-any-number"))
		return rv_fail(et, RV_E_AUTH, "hello: key %s... is member %u, but claims to be %u", name, known->member,
					   hello->member);
	if (known == NULL && claimed != NULL && claimed->known)
		return rv_fail(et, RV_E_AUTH, "hello: key %s... claims to be member %u, who has another key", name,
					   hello->member);
	if (known == NULL && !ticket_verify(p->cfg.serving_key, p->cfg.run_id, hello->member, l->key, hello->ticket))
		return rv_fail(et, RV_E_AUTH, "hello: key %s... is in no roster, and its ticket is not the run's", name);
	if (peers_is_banned(p, hello->member))
		return rv_fail(et, RV_E_AUTH, "hello: member %u (key %s...) is banned from this run", hello->member, name);
	*member = hello->member;
	return RV_OK;
}

/* Returns true if `l` replaces the open link `old` of the same pair. A dialer dials only without a
 * link, or if it doubts the one it has, so a second link from the same side, or one long after,
 * means that the old one is dead there. Otherwise both dialed at once, and the lower key's stays:
 * both sides decide the same. A direct link replaces a relayed one. A relayed one replaces a link
 * that was there when both took the relay's offer, since one of them lacked it. */
static bool replaces(const struct peers *p, const struct link *l, const struct peer *peer) {
	const struct link *old = peer->link;
	if (l->path == PATH_RELAYED)
		return old->opened_us <= l->begun_us || peers_doubts(p, peer);
	if (old->path == PATH_RELAYED)
		return true;
	if (l->role == old->role || p->now_us - old->opened_us > p->cfg.connect_us + p->cfg.greeting_us)
		return true;
	if (old->dialed_beside) /* it dials again, so it does not have the link that it was referred to */
		return true;
	if (peers_doubts(p, peer))
		return true;
	if (RV_BUG("keep-own-of-crossing"))
		return l->role == FRAME_DIALER;
	return (l->role == FRAME_DIALER) == peers_self_is_lower(p, l->key);
}

/* Ends the pair's open link in favour of a newer one, which one side has dialed. */
static void supersede(struct peers *p, struct peer *peer, const struct link *newer) {
	struct link *old = peer->link;
	link_end(old, false, newer->inbound ? RV_E_CLOSED : RV_E_CANCELLED, "a newer link took its place");
	peer->link = NULL; /* reported here, so the reaper need not */
	p->cfg.owner.on_link_down(p->cfg.owner.ctx, peer->member, old->fatal, old->why, old->reason.text);
}

/* Ends this worker's own dial to the same member if it would lose against `l`: a relayed link loses
 * against any other, and no direct one against a relayed one. Before its HELLO is out the other
 * side cannot have opened it, so then it may go in any case. */
static void cancel_dial(struct peers *p, struct link *mine, const struct link *l) {
	if (mine == NULL || mine == l || (l->path == PATH_RELAYED && mine->path != PATH_RELAYED))
		return;
	if (mine->state < LINK_GREETING || !peers_self_is_lower(p, l->key)) {
		mine->quiet = true;
		link_kill(mine, false, RV_E_CLOSED, "duplicate: the other side dialed too");
	}
}

static void promote(struct peers *p, struct link *l, struct peer *peer) {
	if (peers_is_punched(l, peer))
		l->path = PATH_PUNCHED;
	if (peer->dialing == l)
		peer->dialing = NULL;
	if (peer->calling == l)
		peer->calling = NULL;
	if (peer->link != NULL && peer->link->state == LINK_OPEN && !replaces(p, l, peer)) {
		l->quiet = true;
		peer->link->dialed_beside = l->inbound;
		link_kill(l, false, RV_E_CLOSED, "duplicate: both sides dialed, the lower key's link stays");
		return;
	}
	l->member = peer->member;
	if (peer->link != NULL)
		supersede(p, peer, l);
	cancel_dial(p, peer->dialing, l);
	cancel_dial(p, peer->calling, l);
	memcpy(peer->key, l->key, NET_KEY_BYTES);
	peer->link = l;
	peer->refused = PATH_NONE;
	peer->missed = peer->doubted = peer->offered = false;
	if (l->path == PATH_RELAYED) {
		peers_probe_later(p, peer);
		peers_upgrade_later(p, peer);
	}
	if (l->path == PATH_PUNCHED)
		p->net.end_at_close(p->net.ctx, l->fd);
	l->state = LINK_OPEN;
	l->was_open = true;
	l->opened_us = l->last_rx_us = l->alive_us = p->now_us;
	p->cfg.owner.on_link_up(p->cfg.owner.ctx, peer->member);
}

static enum rv_err on_hello(struct peers *p, struct link *l, const struct frame_header *h, const uint8_t *body,
							struct rv_errtext *et) {
	struct frame_hello hello;
	uint32_t member = 0;
	RV_TRY(frame_hello_decode(body, h->body_bytes, &hello, et));
	RV_TRY(check_hello(p, l, &hello, et));
	RV_TRY(find_member(p, l, &hello, &member, et));
	if (l->member != NET_NO_MEMBER && member != l->member)
		return rv_fail(et, RV_E_AUTH, "hello: member %u answers, member %u was dialed", member, l->member);
	struct peer *peer = peers_add(p, member);
	if (peer == NULL)
		return rv_fail(et, RV_E_FULL, "hello: this worker deals with %d members already, as many as it can",
					   p->n_members);
	promote(p, l, peer);
	return RV_OK;
}

/* Takes the peer's BYE; only printable ASCII of its text goes on to people. */
static void on_bye(struct link *l, const struct frame_header *h, const uint8_t *body) {
	char text[FRAME_BYE_MAX_BYTES + 1];
	for (uint32_t i = 0; i < h->body_bytes; i++)
		text[i] = body[i] >= 0x20 && body[i] < 0x7f ? (char)body[i] : '?';
	text[h->body_bytes] = '\0';
	l->quiet = l->state != LINK_OPEN && strncmp(text, "duplicate", 9) == 0;
	l->deliberate = l->state != LINK_DEAD;
	link_kill(l, false, RV_E_CLOSED, "the other side closes the link: %s", text);
	l->say_bye = false;
}

enum rv_err peers_on_frame(void *ctx, struct link *l, const struct frame_header *h, const uint8_t *body,
						   struct rv_errtext *et) {
	struct peers *p = ctx;
	l->last_rx_us = p->now_us;
	if (l->whole_got == 0) /* a PING between slices does not reset their count */
		l->part_rx = 0;
	if (h->type == FRAME_HELLO)
		return on_hello(p, l, h, body, et);
	if (h->type == FRAME_BYE) {
		on_bye(l, h, body);
		return RV_OK;
	}
	RV_ASSERT(l->state == LINK_OPEN);
	if (h->type == FRAME_NUDGE)
		return RV_OK;
	return p->cfg.owner.on_message(p->cfg.owner.ctx, l->member, h, body, et);
}
