/* invite.c: invite links, parsed and formatted (net/invite.h). */
#include "net/invite.h"

#include "base/assert.h"
#include "base/hex.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	RUN_DIGITS = 2 * NET_RUN_ID_BYTES,
	KEY_CHARS = (NET_KEY_BYTES * 4 + 2) / 3,
	TOKEN_CHARS = (NET_TOKEN_BYTES * 4 + 2) / 3
};

/* One "name=value" of the fragment, [at, end). */
static enum rv_err parse_field(const char *at, const char *end, struct invite *out, bool *has_key,
							   struct rv_errtext *et) {
	size_t n = (size_t)(end - at);
	if (n < 2 || at[1] != '=' || (at[0] != 'k' && at[0] != 't'))
		return rv_fail(et, RV_E_INVALID, "invite link: behind '#' only k=KEY and t=TOKEN may stand, joined by '&'");
	bool is_key = at[0] == 'k';
	bool *seen = is_key ? has_key : &out->has_token;
	if (*seen)
		return rv_fail(et, RV_E_INVALID, "invite link: %c= stands twice", at[0]);
	*seen = true;
	if (is_key ? rv_base64url_decode(at + 2, n - 2, out->key, NET_KEY_BYTES)
			   : rv_base64url_decode(at + 2, n - 2, out->token, NET_TOKEN_BYTES))
		return RV_OK;
	return rv_fail(et, RV_E_INVALID,
				   "invite link: %s is %zu characters, or not base64url: must be %d; was the link cut?",
				   is_key ? "k= (the run's key)" : "t= (the token)", n - 2, is_key ? KEY_CHARS : TOKEN_CHARS);
}

static enum rv_err parse_fragment(const char *at, struct invite *out, struct rv_errtext *et) {
	bool has_key = false;
	for (;;) {
		const char *end = at + strcspn(at, "&");
		RV_TRY(parse_field(at, end, out, &has_key, et));
		if (*end == '\0')
			break;
		at = end + 1;
	}
	if (!has_key)
		return rv_fail(et, RV_E_INVALID, "invite link: k=KEY (the run's public key) is missing behind '#'");
	return RV_OK;
}

static enum rv_err parse_host(const char *at, const char *end, struct address *out, struct rv_errtext *et) {
	char text[NET_ADDR_BYTES];
	if ((size_t)(end - at) >= sizeof text)
		return rv_fail(et, RV_E_INVALID, "invite link: host:port has %zu bytes, at most %zu", (size_t)(end - at),
					   sizeof text - 1);
	memcpy(text, at, (size_t)(end - at));
	text[end - at] = '\0';
	enum rv_err e = address_parse(text, out, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "invite link");
	if (out->host[0] == '\0' || out->port == 0)
		return rv_fail(et, RV_E_INVALID, "invite link: \"%s\" needs a host and a port from 1 to 65535", text);
	return RV_OK;
}

enum rv_err invite_parse(const char *text, struct invite *out, struct rv_errtext *et) {
	*out = (struct invite){0};
	size_t scheme = strlen(INVITE_SCHEME);
	if (strlen(text) >= INVITE_MAX_BYTES)
		return rv_fail(et, RV_E_INVALID, "invite link: %zu bytes, at most %d", strlen(text), INVITE_MAX_BYTES - 1);
	if (strncasecmp(text, INVITE_SCHEME, scheme) != 0)
		return rv_fail(et, RV_E_INVALID, "invite link: must start with %s", INVITE_SCHEME);
	const char *host = text + scheme;
	const char *slash = strchr(host, '/');
	const char *hash = strchr(host, '#');
	if (hash == NULL)
		return rv_fail(et, RV_E_INVALID, "invite link: nothing behind '#': in a shell, put the link in quotes");
	if (slash == NULL || slash > hash)
		return rv_fail(et, RV_E_INVALID, "invite link: must be %shost:port/RUN#k=KEY&t=TOKEN", INVITE_SCHEME);
	RV_TRY(parse_host(host, slash, &out->coordinator, et));
	char run[RUN_DIGITS + 1] = "";
	if (hash - slash - 1 == RUN_DIGITS)
		memcpy(run, slash + 1, RUN_DIGITS);
	if (!rv_hex_decode(run, out->run_id, NET_RUN_ID_BYTES))
		return rv_fail(et, RV_E_INVALID, "invite link: the run must be %d hex digits between '/' and '#'", RUN_DIGITS);
	return parse_fragment(hash + 1, out, et);
}

void invite_format(const struct invite *in, char out[INVITE_MAX_BYTES]) {
	char addr[NET_ADDR_BYTES], run[RUN_DIGITS + 1], key[KEY_CHARS + 1], token[TOKEN_CHARS + 1] = "";
	bool fits = address_format(&in->coordinator, addr);
	RV_ASSERT(fits);
	rv_hex_encode(in->run_id, NET_RUN_ID_BYTES, run);
	rv_base64url_encode(in->key, NET_KEY_BYTES, key);
	if (in->has_token)
		rv_base64url_encode(in->token, NET_TOKEN_BYTES, token);
	int n = snprintf(out, INVITE_MAX_BYTES, "%s%s/%s#k=%s%s%s", INVITE_SCHEME, addr, run, key,
					 in->has_token ? "&t=" : "", token);
	RV_ASSERT(n > 0 && n < INVITE_MAX_BYTES);
}
