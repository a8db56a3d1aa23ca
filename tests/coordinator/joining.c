/* joining.c: see joining.h. */
#include "tests/coordinator/joining.h"

#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

void joining_invite(struct service *s, const struct invite_terms *terms, struct invite *out) {
	char links[1][INVITE_MAX_BYTES];
	assert_ok(service_invite(s, terms, 1, links, &et));
	assert_ok(invite_parse(links[0], out, &et));
}

size_t joining_request(const struct invite *in, const char *name, uint8_t body[JOINING_BYTES]) {
	struct join_request rq = {.protocol = CONTROL_VERSION, .run_id = {5}, .has_token = in->has_token};
	memcpy(rq.token, in->token, sizeof rq.token);
	(void)snprintf(rq.name, sizeof rq.name, "%s", name);
	struct rv_writer w = rv_writer_of(body, JOINING_BYTES);
	join_request_encode(&rq, &w);
	assert_false(w.failed);
	return rv_writer_len(&w);
}

enum rv_err joining_join(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct invite *in,
						 const char *name, struct join_reply *out, struct rv_errtext *et) {
	uint8_t body[JOINING_BYTES], reply[NET_MAX_CONFIG_BYTES + 256];
	struct rv_writer w = rv_writer_of(reply, sizeof reply);
	RV_TRY(service_join(s, now_us, key, body, joining_request(in, name, body), &w, et));
	return out == NULL ? RV_OK : join_reply_decode(reply, rv_writer_len(&w), out, et);
}

void joining_document(struct service *s, const struct identity *run, const uint8_t key[NET_KEY_BYTES],
					  struct document *out) {
	const uint8_t *bytes;
	size_t n;
	const struct document_wish wish = {.version = CONTROL_VERSION, .any = true};
	struct document_reply r;
	assert_ok(service_document(s, key, &wish, &r, &et));
	assert_ok(signed_open(run->key, IDENTITY_DOCUMENT_DOMAIN, r.bytes, r.n, &bytes, &n, &et));
	assert_ok(document_decode(bytes, n, out, &et));
}
