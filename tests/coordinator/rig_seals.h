/* rig_seals.h: seals of means and of contributions on the core's bench: signatures are hashes that
 * name the key. */
#ifndef RV_TESTS_COORDINATOR_RIG_SEALS_H
#define RV_TESTS_COORDINATOR_RIG_SEALS_H

#include "net/control/signed_roots.h"

/* Signs for the holder of a key. */
void rig_seal(const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope, const struct rv_hash *root,
			  uint8_t out[NET_SIG_BYTES]);
/* Signs the roots that its report commits to. */
void rig_sign_report(struct report *rep, const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t key[NET_KEY_BYTES]);
struct seal_ops rig_seals(void); /* checks them; nobody signs by it */

#endif
