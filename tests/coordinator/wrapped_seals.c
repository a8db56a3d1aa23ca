/* wrapped_seals.c: a service that checks the signatures of rig_seals.h, by the linker (--wrap): the
 * members of its bench are keys without a secret. */
#include "tests/coordinator/rig_seals.h"

typedef struct seal_ops seal_fn(const struct identity *who);
seal_fn __wrap_seal_ed25519;

struct seal_ops __wrap_seal_ed25519(const struct identity *who) {
	(void)who;
	return rig_seals();
}
