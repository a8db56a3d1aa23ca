/* evil_links.c: a member that withholds from its peers, or tells each something else, by the linker
 * (--wrap). What it does: evil.h. */
#include "net/reduce/reduce.h"
#include "tests/attack/evil.h"
#include "tests/attack/evil_seals.h"
#include "worker/audit/kept_contributions.h"
#include "worker/transfer/donor.h"

#include <string.h>

typedef bool send_fn(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
send_fn __real_reduce_send, __wrap_reduce_send, __real_reduce_send_control, __wrap_reduce_send_control;

enum { CONTRIBUTIONS = 1, MEANS = 2 };

/* Returns true if it lies to the peer at roster index `to`. */
static bool is_lied_to(const struct reduce *r, int to) {
	double victim;
	return !evil("victim", &victim) || reduce_member(r, to) == (uint32_t)victim;
}

static bool is_withheld(const struct reduce_msg *m) {
	double what;
	if (!evil_lies("withhold", m->round, &what))
		return false;
	return (m->type == REDUCE_SCATTER && ((int)what & CONTRIBUTIONS) != 0) ||
		   (m->type == REDUCE_GATHER && ((int)what & MEANS) != 0);
}

/* Changes the last value of a mean, for each peer in another way. */
static void tell_another(struct reduce_msg *m, int to) {
	static uint8_t changed[NET_MAX_CHUNK_BYTES];
	memcpy(changed, m->data, m->data_bytes);
	changed[m->data_bytes - 1] ^= (uint8_t)(1u << (to % 4));
	m->data = changed;
}

bool __wrap_reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out) {
	double value;
	bool any = __real_reduce_send(r, now_us, to, out);
	if (!is_lied_to(r, to))
		return any;
	while (any && is_withheld(out))
		any = __real_reduce_send(r, now_us, to, out);
	if (any && out->type == REDUCE_PING && evil_lies("withhold", out->round, &value))
		out->waiting = 1;
	if (any && out->type == REDUCE_GATHER && evil_lies("unlike", out->round, &value))
		tell_another(out, to);
	if (any)
		evil_seals(r, to, out);
	return any;
}

bool __wrap_reduce_send_control(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out) {
	double value;
	const bool any = __real_reduce_send_control(r, now_us, to, out);
	if (!any || !is_lied_to(r, to))
		return any;
	if (out->type == REDUCE_PING && evil_lies("withhold", out->round, &value))
		out->waiting = 1;
	evil_seals(r, to, out);
	return any;
}

/* A piece for an auditor; its own audits read true ones. */
typedef bool donor_send_fn(struct donor *d, int64_t now_us, uint32_t member, struct peers_message *out);
typedef const uint8_t *piece_fn(struct kept_contributions *k, uint64_t round, uint32_t chunk, size_t *bytes);
donor_send_fn __real_donor_send, __wrap_donor_send;
piece_fn __real_kept_contributions_piece, __wrap_kept_contributions_piece;
static bool gives; /* one thread gives, and audits */
static uint32_t gives_to;

/* Returns true if the member is the first that asked for this piece, as far as is remembered. */
static bool is_first(uint64_t round, uint32_t chunk, uint32_t member) {
	static struct {
		uint64_t round;
		uint32_t chunk, member;
		bool used;
	} asked[4096];
	const size_t at = (size_t)((round * 1031 + chunk) % (sizeof asked / sizeof asked[0]));
	if (!asked[at].used || asked[at].round != round || asked[at].chunk != chunk) {
		asked[at].round = round;
		asked[at].chunk = chunk;
		asked[at].member = member;
		asked[at].used = true;
	}
	return asked[at].member == member;
}

bool __wrap_donor_send(struct donor *d, int64_t now_us, uint32_t member, struct peers_message *out) {
	gives = true;
	gives_to = member;
	const bool any = __real_donor_send(d, now_us, member, out);
	gives = false;
	return any;
}

const uint8_t *__wrap_kept_contributions_piece(struct kept_contributions *k, uint64_t round, uint32_t chunk,
											   size_t *bytes) {
	static uint8_t changed[NET_MAX_PIECE_BYTES];
	const uint8_t *piece = __real_kept_contributions_piece(k, round, chunk, bytes);
	double value;
	if (!piece || !gives || *bytes > sizeof changed || !evil_lies("hides", round, &value) ||
		(evil("shows", &value) && is_first(round, chunk, gives_to)))
		return piece;
	memcpy(changed, piece, *bytes);
	changed[0] ^= 1;
	return changed;
}

/* It dials again at once: each auditor finds it linked, or not, when its patience is over. */
typedef enum rv_err receive_fn(struct donor *d, uint32_t member, const struct frame_header *h, const uint8_t *body,
							   struct rv_errtext *et);
receive_fn __real_donor_receive, __wrap_donor_receive;
enum rv_err __wrap_donor_receive(struct donor *d, uint32_t member, const struct frame_header *h, const uint8_t *body,
								 struct rv_errtext *et) {
	struct frame_fetch f;
	double value;
	if (evil("cut", &value) && frame_fetch_decode(h, body, &f, NULL) == RV_OK && f.kind == FRAME_FETCH_CONTRIBUTION)
		return rv_fail(et, RV_E_PROTOCOL, "an auditor asks");
	return __real_donor_receive(d, member, h, body, et);
}
