/* samples.c: whether the page may let the current model write: only with memory that training does
 * not need, and with the program that does it. */
#include "worker/session/internal.h"

#include "base/os_memory.h"
#include "base/os_program.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Vectors of all parameters: theta, the outer state, a round's result, and the model's own. */
enum { VECTORS = 5 };
static const size_t PROGRAM_BYTES = (size_t)192 << 20; /* code, libraries, the cache of a context */
static const size_t SPARE_BYTES = (size_t)256 << 20;   /* stays free for others */

/* Finds `rivulet` beside this program. */
static bool find_program(char out[PATH_MAX]) {
	if (!os_program_path(out))
		return false;
	char *slash = strrchr(out, '/');
	if (!slash || (size_t)(slash + sizeof "/rivulet" - out) > PATH_MAX)
		return false;
	(void)strcpy(slash, "/rivulet");
	return access(out, X_OK) == 0;
}

static void plan_of(const struct session *s, size_t needs, struct sample_plan *out) {
	(void)snprintf(out->dir, sizeof out->dir, "%s", s->opt->dir);
	(void)snprintf(out->tokenizer, sizeof out->tokenizer, "%s", s->member.tokenizer);
	if (s->text && !s->member.tokenizer[0] && s->member.config.tokenizer_hash[0])
		(void)snprintf(out->tokenizer, sizeof out->tokenizer, "%s/tokenizer.json", s->data_path);
	out->memory_bytes = (int64_t)needs;
}

/* Writes why there can be no sample now; "": there can. */
static void why_not(const struct session *s, size_t needs, const struct sample_plan *plan, char *out, size_t cap) {
	const size_t room = os_memory_available("");
	out[0] = '\0';
	if (!plan->program[0])
		(void)snprintf(out, cap,
					   "Install the package rivulet to try the model here: its program is not beside this one.");
	else if (round_round(session_round(s)) == 0)
		(void)snprintf(out, cap, "The model has not learnt anything yet: no round is done.");
	else if (room < needs + SPARE_BYTES)
		(void)snprintf(out, cap,
					   "Off for now: it would take %zu MB of memory, and %zu MB are free. Training comes first.",
					   (needs >> 20) + 1, room >> 20);
}

json_t *session_plan_samples(struct session *s) {
	struct sample_plan plan = {.memory_bytes = 0};
	char why[256];
	const size_t needs = VECTORS * sizeof(float) * s->store.cfg.n + PROGRAM_BYTES;
	if (!find_program(plan.program))
		plan.program[0] = '\0';
	plan_of(s, needs, &plan);
	why_not(s, needs, &plan, why, sizeof why);
	local_server_plan_samples(s->local->server, why[0] ? NULL : &plan, why);
	return json_pack("{s:b, s:s, s:I, s:i, s:i}", "available", !why[0], "why", why, "round",
					 (json_int_t)round_round(session_round(s)), "tokens", SAMPLE_TOKENS, "seconds", SAMPLE_S);
}
