/* join.c: the encodings of join_request and join_reply. */
#include "base/shown_text.h"
#include "net/control/control.h"
#include "net/control/fields.h"
#include "net/control/layout.h"

#include <sodium.h>
#include <string.h>

static const char REQUEST[] = "join request";
static const char REPLY[] = "join reply";

static const struct layout request[] = {
	LAYOUT_FIELD(PLAIN, struct join_request, run_id),
	LAYOUT_FIELD(BOOL, struct join_request, has_token),
	LAYOUT_FIELD(PLAIN, struct join_request, token),
	LAYOUT_FIELD(TEXT, struct join_request, name),
	LAYOUT_FIELD(TEXT, struct join_request, software),
	LAYOUT_FIELD(PLAIN, struct join_request, protocol_min),
	LAYOUT_LAST,
};

void join_request_encode(const struct join_request *m, struct rv_writer *w) {
	struct join_request known = *m;
	if (!m->has_token)
		memset(known.token, 0, sizeof known.token);
	control_write_head(w, CONTROL_TAG_JOIN_REQUEST, m->protocol);
	layout_write(request, &known, w);
}

enum rv_err join_request_decode(const void *p, size_t n, struct join_request *out, struct rv_errtext *et) {
	*out = (struct join_request){0};
	struct rv_reader r = rv_reader_of(p, n);
	RV_TRY(control_read_head(&r, CONTROL_TAG_JOIN_REQUEST, REQUEST, &out->protocol, et));
	RV_TRY(layout_read(request, &r, out, REQUEST, et));
	if (out->protocol > control_version())
		(void)rv_read_span(&r, rv_reader_left(&r)); /* what a later version has to add */
	RV_TRY(control_read_end(&r, REQUEST, et));
	if (out->protocol_min > out->protocol)
		return rv_fail(et, RV_E_INVALID, "%s: versions %u to %u", REQUEST, out->protocol_min, out->protocol);
	if (!out->has_token && !sodium_is_zero(out->token, sizeof out->token))
		return rv_fail(et, RV_E_INVALID, "%s: token is not zero though it is said to be absent", REQUEST);
	const char *why = rv_shown_invalid(out->name);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "%s: name: %s", REQUEST, why);
	why = rv_shown_invalid(out->software);
	return why == NULL ? RV_OK : rv_fail(et, RV_E_INVALID, "%s: software: %s", REQUEST, why);
}

void join_reply_encode(const struct join_reply *m, uint32_t version, struct rv_writer *w) {
	size_t config_bytes = strnlen(m->config, sizeof m->config);
	control_write_head(w, CONTROL_TAG_JOIN_REPLY, version);
	rv_write_u32(w, m->member);
	rv_write_bytes(w, m->run_id, sizeof m->run_id);
	rv_write_bytes(w, m->run_hash.b, RV_HASH_BYTES);
	rv_write_u32(w, (uint32_t)config_bytes);
	rv_write_bytes(w, m->config, config_bytes);
	rv_write_bytes(w, m->ticket, sizeof m->ticket);
}

/* Returns NULL, or the violated condition: printable text. It alone may have line breaks and
 * tabs. */
static const char *config_invalid(const uint8_t *p, size_t n) {
	for (size_t i = 0; i < n; i++)
		if ((p[i] < 0x20 && p[i] != '\n' && p[i] != '\t') || p[i] == 0x7f)
			return "holds a control character";
	return NULL;
}

enum rv_err join_reply_decode(const void *p, size_t n, struct join_reply *out, struct rv_errtext *et) {
	*out = (struct join_reply){0};
	struct rv_reader r = rv_reader_of(p, n);
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_JOIN_REPLY, REPLY, &out->version, et));
	out->member = rv_read_u32(&r);
	rv_read_copy(&r, out->run_id, sizeof out->run_id);
	rv_read_copy(&r, out->run_hash.b, RV_HASH_BYTES);
	uint32_t config_bytes = rv_read_u32(&r);
	if (config_bytes >= NET_MAX_CONFIG_BYTES)
		return rv_fail(et, RV_E_INVALID, "%s: config of %u bytes, below %d", REPLY, config_bytes,
					   (int)NET_MAX_CONFIG_BYTES);
	const uint8_t *config = rv_read_span(&r, config_bytes);
	rv_read_copy(&r, out->ticket, sizeof out->ticket);
	RV_TRY(control_read_end(&r, REPLY, et));
	const char *why = config_invalid(config, config_bytes);
	if (why == NULL) {
		memcpy(out->config, config, config_bytes);
		why = rv_utf8_invalid(out->config);
	}
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "%s: config: %s", REPLY, why);
	if (out->member == NET_NO_MEMBER)
		return rv_fail(et, RV_E_INVALID, "%s: member = %u, which is the number of none", REPLY, out->member);
	return RV_OK;
}
