/* evil_links.c: a member that withholds from its peers, or tells each something else, by the linker
 * (--wrap). What it does: evil.h. */
#include "net/reduce/reduce.h"
#include "tests/attack/evil.h"
#include "tests/attack/evil_seals.h"
#include "worker/transfer/donor.h"

#include <string.h>

typedef bool send_fn(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
send_fn __real_reduce_send, __wrap_reduce_send, __real_reduce_send_control, __wrap_reduce_send_control;

enum { CONTRIBUTIONS = 1, MEANS = 2 };

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
	if (any && out->type == REDUCE_PING && evil_lies("withhold", out->round, &value))
		out->waiting = 1;
	if (any)
		evil_seals(r, to, out);
	return any;
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
