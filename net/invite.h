/* invite.h: the link that a volunteer pastes: the coordinator's address, the run, its public key, a
 * token.
 *
 *     rivulet://host:port/RUN#k=KEY&t=TOKEN
 *
 * RUN: 32 hex digits. KEY (run's Ed25519 public key) and TOKEN: base64url without padding. The
 * token is absent for a worker that is a member already. The secret follows '#': a browser or proxy
 * never sends that part. */
#ifndef RV_NET_INVITE_H
#define RV_NET_INVITE_H

#include "net/address.h"

#define INVITE_SCHEME "rivulet://"
enum { INVITE_MAX_BYTES = 320 }; /* NUL included */

struct invite {
	struct address coordinator;
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint8_t key[NET_KEY_BYTES];
	bool has_token;
	uint8_t token[NET_TOKEN_BYTES];
};

/* Parses an invite. RV_E_INVALID names what is wrong and where; the token is never part of an error
 * text. */
enum rv_err invite_parse(const char *text, struct invite *out, struct rv_errtext *et);
/* Writes the link; invite_parse returns the same invite from it. */
void invite_format(const struct invite *in, char out[INVITE_MAX_BYTES]);

#endif
