/* local_commands.c: see local_commands.h. */
#include "worker/local/local_commands.h"

#include "base/assert.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

enum { COMMANDS_MOST = 32 };

static const struct local_command *find(const struct local_command *table, const char *name, struct rv_errtext *et) {
	const char *names[COMMANDS_MOST];
	int n = 0;
	for (const struct local_command *c = table; c->name; c++) {
		if (strcmp(c->name, name) == 0)
			return c;
		RV_ASSERT(n < COMMANDS_MOST);
		names[n++] = c->name;
	}
	const char *near = rv_nearest_name(name, names, n);
	(void)rv_fail(et, RV_E_INVALID, near ? "%.40s: no such command; did you mean %s?" : "%.40s: no such command", name,
				  near);
	return NULL;
}

static struct local_answer answer_to(const struct local_command *table, void *ctx, const json_t *request) {
	struct local_answer a = {.ok = false};
	struct rv_errtext et = {0};
	const char *name = json_string_value(json_object_get(request, "command"));
	const struct local_command *c = find(table, name ? name : "", &et);
	a.ok = c && c->run(ctx, request, a.text, &et) == RV_OK;
	if (!a.ok)
		(void)snprintf(a.text, sizeof a.text, "%s", et.text);
	return a;
}

void local_commands_serve(struct mailbox *m, const struct local_command *table, void *ctx, void (*ran)(void *ctx)) {
	uint64_t ticket;
	for (json_t *request; (request = mailbox_take(m, &ticket));) {
		const struct local_answer a = answer_to(table, ctx, request);
		json_decref(request);
		if (ran)
			ran(ctx);
		mailbox_answer(m, ticket, &a);
	}
}
