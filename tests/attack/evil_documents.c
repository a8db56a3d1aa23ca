/* evil_documents.c: `rivulet-coordinator serve` in the hands of an attacker, by the linker
 * (--wrap). It exists for tests only. Workers pin its key, and it signs what it says.
 *
 * RIVULET_EVIL_COORDINATOR is one of
 *   aim=IP:PORT   each member of each document may be dialed there, and nowhere else; nobody has
 *                 confirmed that address
 *   root=M        each document of a roster names a root for member M that it has not signed
 *   draws=R       the audits of round R are drawn with another secret than documents had promised, and
 *                 documents of round R + 2 promise none
 *   rounds=N      whoever asks for the run's configuration before it joins is shown N rounds; the answer
 *                 to the join has the true one */
#include "coordinator/core/core.h"
#include "coordinator/service/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the value of the attack `name`, or NULL. */
static const char *attack(const char *name) {
	const char *said = getenv("RIVULET_EVIL_COORDINATOR");
	const size_t n = strlen(name);
	return said && strncmp(said, name, n) == 0 && said[n] == '=' ? said + n + 1 : NULL;
}

/* ---- where members may be dialed ---- */

typedef bool document_fn(const struct core *c, uint32_t slot, struct document *out);
document_fn __real_core_document_of, __wrap_core_document_of;

static void aim(struct member_ref *refs, int n, const char *at) {
	for (int i = 0; i < n; i++) {
		refs[i].n_candidates = 1;
		refs[i].candidates[0] = (struct candidate_ref){.kind = CANDIDATE_SEEN};
		(void)snprintf(refs[i].candidates[0].addr, sizeof refs[i].candidates[0].addr, "%s", at);
	}
}

bool __wrap_core_document_of(const struct core *c, uint32_t slot, struct document *out) {
	const char *at = attack("aim"), *of = attack("root"), *draws = attack("draws");
	const bool there = __real_core_document_of(c, slot, out);
	if (there && draws && out->round == strtoull(draws, NULL, 10) + 1)
		out->audit_secret.b[0] ^= 1;
	if (there && draws && out->round == strtoull(draws, NULL, 10) + 2)
		out->audit_promise = (struct rv_hash){{0}};
	for (int i = 0; there && of && out->phase == RUN_REDUCE && i < out->n_members; i++)
		out->members[i].contribution.root.b[0] ^= out->members[i].member == strtoul(of, NULL, 10);
	if (!there || !at)
		return there;
	aim(out->members, out->n_members, at);
	aim(out->syncing, out->n_syncing, at);
	return true;
}

/* ---- what volunteers are shown before they agree ---- */

typedef const char *config_fn(const struct service *s);
config_fn __real_service_run_config, __wrap_service_run_config;

const char *__wrap_service_run_config(const struct service *s) {
	static char shown[NET_MAX_CONFIG_BYTES];
	static const char key[] = "\nrounds = ";
	const char *text = __real_service_run_config(s), *rounds = attack("rounds");
	const char *at = strstr(text, key);
	if (!rounds || !at)
		return text;
	(void)snprintf(shown, sizeof shown, "%.*s%s%s%s", (int)(at - text), text, key, rounds,
				   at + sizeof key - 1 + strcspn(at + sizeof key - 1, "\n"));
	return shown;
}
