/* consent.c: shows what the run is, needs and does, and asks, before anything is spent: on the
 * terminal and on the page at once, whichever is answered first. */
#include "worker/session/internal.h"

#include "base/model_shape.h"
#include "base/parallel.h"
#include "worker/local/local_commands.h"
#include "worker/state/state_format.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void session_computes(const struct session *s, char out[SESSION_COMPUTES_BYTES]) {
	struct device_choice device;
	const int threads = s->opt->threads > 0 ? (int)s->opt->threads : parallel_cores();
	if (device_choose(s->opt->device, &device, NULL) != RV_OK)
		snprintf(out, SESSION_COMPUTES_BYTES, "%s", s->opt->device);
	else if (device_is_gpu(&device))
		snprintf(out, SESSION_COMPUTES_BYTES, "%d %s GPU%s", device.n, device_maker(&device), device.n == 1 ? "" : "s");
	else
		snprintf(out, SESSION_COMPUTES_BYTES, "the processor (%d core%s)", threads, threads == 1 ? "" : "s");
}

/* ---- the needs ---- */

static uint64_t memory_bytes(const struct session *s, const struct run_config *run) {
	struct trainer_config c = {.run = run, .device = s->opt->device, .threads = (int)s->opt->threads};
	struct device_choice device;
	struct memory_plan plan;
	session_choose_savings(s, &c);
	if (device_choose(c.device, &device, NULL) != RV_OK || session_memory_of(&c, &device, &plan, NULL) != RV_OK)
		return 0;
	return memory_plan_host(&plan);
}

static enum rv_err needs_of(const struct session *s, const struct run_config *run, struct terms_needs *out,
							struct rv_errtext *et) {
	struct model_extent extent;
	struct session_disk_plan disk;
	struct global_config g;
	RV_TRY(session_global_of(run, &extent, &g, et));
	const struct chunking chunks = global_round_chunks(&g, 0);
	out->parameters = extent.n_params;
	out->rounds = (uint64_t)run->rounds;
	out->tokens_per_round = (uint64_t)(run->batch * run->grad_accum * run->context * run->steps_per_round);
	out->memory_bytes = memory_bytes(s, run);
	out->state_disk_bytes = session_least_disk_bytes(&g) + session_audit_disk_bytes(run, &g);
	RV_TRY(session_plan_disk(s, run, &g, &disk, et));
	out->text_bytes = disk.text_bytes;
	if (s->about.text_bytes > 0 && s->about.text_bytes < out->text_bytes)
		out->text_bytes = s->about.text_bytes;
	out->text_least_bytes = disk.text_least_bytes;
	out->state_bytes = state_file_max_bytes(&g, STATE_KIND_SNAPSHOT, 0);
	out->round_bytes = chunking_total_bytes(&chunks, global_sent(&g)) + chunking_total_bytes(&chunks, g.codec);
	out->shows_moments = run_config_is_repeated(run);
	return RV_OK;
}

/* ---- the question ---- */

enum answer { NO_ANSWER, SAYS_YES, SAYS_NO };

static enum rv_err take_answer(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	const json_t *yes = json_object_get(request, "yes");
	if (!json_is_boolean(yes))
		return rv_fail(et, RV_E_INVALID, "consent: \"yes\" must be true or false");
	*(enum answer *)ctx = json_is_true(yes) ? SAYS_YES : SAYS_NO;
	(void)snprintf(text, LOCAL_TEXT_BYTES, "%s",
				   json_is_true(yes) ? "Joining." : "Nothing was spent; the worker ends.");
	return RV_OK;
}

static const struct local_command commands[] = {{"consent", take_answer}, {.name = NULL}};

static void publish_question(struct session *s, const char *terms) {
	if (!s->local->server)
		return;
	json_t *status = session_status(s, rv_clock_monotonic_us());
	(void)json_object_set_new(status, "state", json_string("asking"));
	(void)json_object_set_new(status, "text", json_string("Waiting for your answer: shall this computer join?"));
	(void)json_object_set_new(status, "terms", json_string(terms));
	(void)json_object_set_new(status, "commands", json_pack("[s]", "consent"));
	local_server_publish(s->local->server, status);
}

/* Reads a line that was typed. The end of the file is a no. */
static enum answer typed(void) {
	char line[128];
	if (!fgets(line, sizeof line, stdin))
		return SAYS_NO;
	char *at = line + strspn(line, " \t");
	at[strcspn(at, " \t\r\n")] = '\0';
	for (char *c = at; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (strcmp(at, "y") == 0 || strcmp(at, "yes") == 0)
		return SAYS_YES;
	return strcmp(at, "n") == 0 || strcmp(at, "no") == 0 ? SAYS_NO : NO_ANSWER;
}

/* Waits for a signal (a no), a line, or the page. */
static enum answer wait_for_answer(struct session *s) {
	struct pollfd fds[] = {{.fd = s->signals.fd, .events = POLLIN},
						   {.fd = STDIN_FILENO, .events = POLLIN},
						   {.fd = session_local_fd(s), .events = POLLIN}};
	enum answer answer = NO_ANSWER;
	while (answer == NO_ANSWER) {
		(void)printf("Shall this computer join? [y/n] ");
		(void)fflush(stdout);
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return SAYS_NO;
		if (fds[0].revents)
			return SAYS_NO;
		if (fds[1].revents)
			answer = typed();
		if (fds[2].revents)
			local_commands_serve(local_server_mailbox(s->local->server), commands, &answer, NULL);
	}
	(void)putchar('\n');
	return answer;
}

static enum rv_err refuse_without_terminal(const char *terms, struct rv_errtext *et) {
	(void)fprintf(stderr, "%s\n", terms);
	return rv_fail(
		et, RV_E_AUTH,
		"there is no terminal to ask on: read the lines above and start it with --yes, if you agree. Nothing "
		"was spent, and the link can still be used");
}

static enum rv_err ask(struct session *s, const char *terms, struct rv_errtext *et) {
	if (s->opt->yes)
		return RV_OK;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return refuse_without_terminal(terms, et);
	publish_question(s, terms);
	(void)printf("\n%s\n", terms);
	if (wait_for_answer(s) == SAYS_YES)
		return RV_OK;
	return rv_fail(et, RV_E_AUTH, "not joined: nothing was spent, and the link can still be used");
}

enum rv_err session_ask_consent(struct session *s, const struct run_config *run, const char *config,
								struct rv_errtext *et) {
	struct run_about last;
	struct rv_hash accepted = {{0}};
	char terms[TERMS_BYTES], computes[SESSION_COMPUTES_BYTES], coordinator[NET_ADDR_BYTES] = "";
	struct terms_needs needs = {.computes = computes, .coordinator = coordinator};
	const struct rv_hash hash = terms_hash(&s->about, config);
	if (terms_read(s->opt->dir, &last, &accepted) && rv_hash_equal(&hash, &accepted))
		return RV_OK;
	session_computes(s, computes);
	(void)address_format(&s->member.invite.coordinator, coordinator);
	RV_TRY(needs_of(s, run, &needs, et));
	terms_text(&s->about, &needs, terms);
	RV_TRY(ask(s, terms, et));
	return terms_write(s->opt->dir, &s->about, &hash, et);
}
