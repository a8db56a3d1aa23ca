/* local.c: the worker's page and the commands of the person who runs it (worker/local/). */
#include "worker/session/internal.h"

#include "worker/local/local_commands.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#define PUBLISH_EVERY_US RV_US_PER_S

/* ended by name == NULL */
static const struct local_command commands[] = {
	{.name = NULL},
};

/* Tells where the page is: on a terminal the address with the token, in a log without, since others
 * may read it. */
static void log_place(struct session *s) {
	char url[LOCAL_URL_BYTES];
	local_server_url(s->local->server, url);
	rv_event_in_log(s->events, RV_INFO, "local", RV_FIELDS(rv_field_str("file", LOCAL_FILE)),
					"`rivulet-worker status --dir %s` prints the address of this worker's page", s->opt->dir);
	if (isatty(STDOUT_FILENO))
		(void)printf("Watch it at %s\n", url);
}

void session_open_local(struct session *s) {
	struct rv_errtext et = {0};
	if (s->local->server || s->opt->local_port < 0)
		return;
	enum rv_err e = local_server_new(s->opt->dir, (uint16_t)s->opt->local_port, &s->local->server, &et);
	if (e == RV_OK)
		log_place(s);
	else
		rv_event(s->events, RV_WARN, "local", RV_FIELDS(rv_field_str("error", rv_err_name(e))),
				 "no page, and no answer to `rivulet-worker status`: %s", et.text);
}

void session_close_local(struct session_local *l) {
	local_server_free(l->server);
	l->server = NULL;
}

int session_local_fd(const struct session *s) {
	return s->local->server ? mailbox_owner_fd(local_server_mailbox(s->local->server)) : -1;
}

int64_t session_local_deadline_us(const struct session *s) {
	return s->local->server ? s->publish_us : INT64_MAX;
}

/* Lists what the page may offer. */
static json_t *command_names(void) {
	json_t *names = json_array();
	for (const struct local_command *c = commands; c->name; c++)
		(void)json_array_append_new(names, json_string(c->name));
	return names;
}

static json_t *status_with_commands(struct session *s, int64_t now_us) {
	json_t *status = session_status(s, now_us);
	(void)json_object_set_new(status, "commands", command_names());
	if (session_is_up(s))
		(void)json_object_set_new(status, "sample", session_plan_samples(s));
	return status;
}

void session_serve_local(struct session *s, int64_t now_us) {
	if (!s->local->server)
		return;
	local_commands_serve(local_server_mailbox(s->local->server), commands, s);
	if (now_us < s->publish_us)
		return;
	s->publish_us = now_us + PUBLISH_EVERY_US;
	local_server_publish(s->local->server, status_with_commands(s, now_us));
}
