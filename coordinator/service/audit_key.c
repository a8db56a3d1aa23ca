/* audit_key.c: the secret from which the audits of all rounds follow. It is the run's, in its
 * store, and no part of the serving key: a replaced key leaves the promises of open audits as
 * they are, and a stolen one does not tell which averages will be looked at. */
#include "coordinator/service/internal.h"

#include "base/hex.h"

#include <sodium.h>
#include <string.h>

enum { KEY_BYTES = 32, DIGITS = 2 * KEY_BYTES };

static const char setting[] = "audit-key";

static enum rv_err make(struct store *store, char digits[DIGITS + 1], struct rv_errtext *et) {
	uint8_t key[KEY_BYTES];
	randombytes_buf(key, sizeof key);
	rv_hex_encode(key, sizeof key, digits);
	sodium_memzero(key, sizeof key);
	return store->ops->set(store, setting, digits, et);
}

enum rv_err service_load_audit_key(struct store *store, struct rv_hash *out, struct rv_errtext *et) {
	char digits[DIGITS + 1] = "";
	struct rv_hasher h = rv_hasher_of("rivulet audit key");
	RV_TRY(store->ops->get(store, setting, digits, sizeof digits, et));
	if (digits[0] == '\0')
		RV_TRY(make(store, digits, et));
	rv_hash_update(&h, digits, strlen(digits));
	*out = rv_hash_final(&h);
	sodium_memzero(digits, sizeof digits);
	return RV_OK;
}
