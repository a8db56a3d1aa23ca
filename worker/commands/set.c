/* set.c: `rivulet-worker set`: changes settings of a worker, while it runs or before its next
 * start. */
#include "base/file.h"
#include "worker/commands/commands.h"
#include "worker/local/local_client.h"
#include "worker/options/settings.h"
#include "worker/session/session.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct set_options {
	char dir[sizeof(((struct worker_options *)0)->dir)];
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct set_options, dir), sizeof(((struct set_options *)0)->dir), "rivulet-worker",
	 1, 0, NULL, "Directory of the worker.", "Settings"},
	{.name = NULL},
};

enum { NAME_BYTES = 64 };

/* Splits "max-up=5mbit"; *value points into `text`. */
static enum rv_err split(const char *text, char name[NAME_BYTES], const char **value, struct rv_errtext *et) {
	const char *is = strchr(text, '=');
	const size_t n = is ? (size_t)(is - text) : 0;
	if (n == 0 || n >= NAME_BYTES)
		return rv_fail(et, RV_E_INVALID, "%.80s: must be OPTION=VALUE, such as max-up=5mbit", text);
	memcpy(name, text, n);
	name[n] = '\0';
	*value = is + 1;
	return RV_OK;
}

static enum rv_err set_all(struct worker_options *o, const struct rv_args *args, struct rv_errtext *et) {
	for (int i = 0; i < args->n; i++) {
		char name[NAME_BYTES];
		const char *value;
		RV_TRY(split(args->at[i], name, &value, et));
		RV_TRY(settings_set(o, name, value, et));
	}
	return worker_options_check(o, &(struct rv_args){.n = 0}, et);
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct worker_options o;
	(void)opts;
	rv_options_defaults(worker_options_table, &o);
	return set_all(&o, args, et);
}

/* No worker runs: nobody else may write the file meanwhile. */
static enum rv_err set_in_file(const char *dir, const struct rv_args *args, struct rv_errtext *et) {
	struct worker_options o;
	int lock_fd;
	RV_TRY(rv_dir_lock(dir, &lock_fd, et));
	(void)snprintf(o.dir, sizeof o.dir, "%s", dir);
	enum rv_err e = settings_recall(&o, et);
	if (e == RV_OK)
		e = set_all(&o, args, et);
	if (e == RV_OK)
		e = session_check_kept(&o, et);
	if (e == RV_OK)
		e = settings_store(&o, et);
	rv_dir_unlock(lock_fd);
	if (e == RV_OK)
		(void)printf("Kept. It is in force when the worker is started.\n");
	return e;
}

static enum rv_err command_of(const struct rv_args *args, json_t **out, struct rv_errtext *et) {
	json_t *values = json_object();
	enum rv_err e = RV_OK;
	for (int i = 0; i < args->n && e == RV_OK; i++) {
		char name[NAME_BYTES];
		const char *value;
		e = split(args->at[i], name, &value, et);
		if (e == RV_OK)
			(void)json_object_set_new(values, name, json_string(value));
	}
	*out = e == RV_OK ? json_pack("{s:s, s:o}", "command", "set", "options", values) : NULL;
	if (e != RV_OK)
		json_decref(values);
	return e;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct set_options *o = opts;
	char text[LOCAL_TEXT_BYTES];
	json_t *command;
	RV_TRY(command_of(args, &command, et));
	enum rv_err e = local_client_command(o->dir, command, text, et);
	if (e == RV_E_NOTFOUND)
		return set_in_file(o->dir, args, et);
	RV_TRY(e);
	(void)printf("%s\n", text);
	return RV_OK;
}

const struct rv_command worker_set_command = {
	.name = "set",
	.synopsis = "OPTION=VALUE...",
	.args_min = 1,
	.args_max = RV_PROGRAM_ARGS_MAX,
	.help = "Changes settings of the worker in --dir, while it runs or before its next start, and keeps them.",
	.details = "Options and values are those of `rivulet-worker --help`, such as max-up=5mbit hours='22-6'\n"
			   "on-battery=yes. Caps, shares and hours are in force at once; for others, such as max-memory, the\n"
			   "worker saves and goes on with them.\n",
	.options = options,
	.opts_bytes = sizeof(struct set_options),
	.check = check,
	.run = run,
};
