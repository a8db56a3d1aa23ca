/* operator_session.c: see operator_session.h. The process that holds the directory's lock runs the
 * run: so the lock shows whether there is a coordinator to ask. */
#include "coordinator/commands/operator_session.h"

#include "base/clock.h"
#include "coordinator/commands/opened_run.h"
#include "coordinator/web/listen_file.h"
#include "net/http_client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A member in the status has at most 64 KiB: names, four addresses, 256 ways to others, and, as
 * numbers, all from which it is apart. */
enum { STATUS_MAX_BYTES = 16 << 20, STATUS_PAGES_MAX = 4 * NET_MAX_HERE / SERVICE_PAGE_MEMBERS };
_Static_assert(STATUS_MAX_BYTES >= SERVICE_PAGE_MEMBERS * (1 << 16) + (4 << 20), "a page, and what is of the run");
enum { REPLY_MAX_BYTES = 1 << 20, TIMEOUT_MS = 10000, COPY_TIMEOUT_MS = 600000, STARTING_MS = 3000 };

struct operator_session {
	bool online;
	struct opened_run run; /* offline */
	struct run_keys keys;  /* online */
	struct http_client *http;
	char dir[RUN_DIR_BYTES];
};

/* ---- over HTTPS ---- */

struct question {
	const char *path, *form; /* form NULL: GET */
	size_t max_bytes;
	int64_t timeout_ms;
};

struct answer {
	bool done;
	enum rv_err err;
	int status;
	char *body; /* n bytes, and a NUL */
	size_t n;
	char text[RV_ERRTEXT_BYTES];
};

static void on_done(void *ctx, const struct http_reply *reply) {
	struct answer *a = ctx;
	a->done = true;
	a->err = reply->err;
	a->status = reply->status;
	if (reply->err != RV_OK) {
		(void)snprintf(a->text, sizeof a->text, "%s", reply->text);
		return;
	}
	a->n = reply->body_bytes;
	a->body = calloc(1, a->n + 1);
	if (a->body != NULL && a->n > 0)
		memcpy(a->body, reply->body, a->n);
}

/* Asks and returns the body in a->body (the caller frees it) on 200 and 204. */
static enum rv_err ask_for(struct operator_session *o, const struct question *q, struct answer *a,
						   struct rv_errtext *et) {
	struct http_request rq = {.path = q->path,
							  .body = q->form,
							  .body_bytes = q->form != NULL ? strlen(q->form) : 0,
							  .max_reply_bytes = q->max_bytes,
							  .timeout_ms = q->timeout_ms,
							  .done = on_done,
							  .ctx = a};
	*a = (struct answer){.done = false};
	RV_TRY(http_client_start(o->http, &rq, NULL, et));
	while (!a->done)
		RV_TRY(http_client_poll(o->http, NULL, 0, RV_US_PER_S, et));
	if (a->err != RV_OK)
		return rv_fail(et, a->err, "%s", a->text);
	if (a->body == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the coordinator's answer");
	if (a->status / 100 == 2)
		return RV_OK;
	enum rv_err e = rv_fail(et, a->status == 404 ? RV_E_NOTFOUND : RV_E_INVALID, "the coordinator answers %d: %.*s",
							a->status, (int)strcspn(a->body, "\n"), a->body);
	free(a->body);
	a->body = NULL;
	return e;
}

/* Asks and returns the body as text (the caller frees it). */
static enum rv_err ask(struct operator_session *o, const char *path, const char *form, char **body,
					   struct rv_errtext *et) {
	const struct question q = {path, form, form == NULL ? STATUS_MAX_BYTES : REPLY_MAX_BYTES, TIMEOUT_MS};
	struct answer a;
	*body = NULL;
	RV_TRY(ask_for(o, &q, &a, et));
	*body = a.body;
	return RV_OK;
}

/* Reads DIR/listen, which a coordinator that is just starting has not made yet. */
static enum rv_err read_listen(const struct run_dir *dir, struct address *out, struct rv_errtext *et) {
	enum rv_err e = listen_file_read(dir->listen, out, et);
	if (e != RV_E_NOTFOUND)
		return e;
	return rv_fail(
		et, RV_E_BUSY,
		"%s is in use, but %s does not exist: if the coordinator is just starting, try again; if its log reports "
		"a full disk, it tries again every 10 s",
		dir->dir, dir->listen);
}

static enum rv_err open_online(const struct run_dir *dir, struct operator_session *o, struct rv_errtext *et) {
	struct http_client_config cfg = {.connect_timeout_ms = STARTING_MS};
	o->online = true;
	RV_TRY(read_listen(dir, &cfg.server, et));
	RV_TRY(run_keys_load(dir->key, &o->keys, et));
	const uint8_t any_run[NET_RUN_ID_BYTES] = {0}; /* the coordinator here has this very key */
	cfg.trust = run_trust_of(any_run, o->keys.serving.key);
	cfg.identity = &o->keys.serving;
	return http_client_new(&cfg, &o->http, et);
}

/* ---- either way ---- */

enum rv_err operator_open(const char *dir, const struct address *advertise, struct operator_session **out,
						  struct rv_errtext *et) {
	struct run_dir d;
	*out = NULL;
	RV_TRY(run_dir_find(dir, &d, et));
	struct operator_session *o = calloc(1, sizeof *o);
	if (o == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory");
	(void)snprintf(o->dir, sizeof o->dir, "%s", d.dir);
	enum rv_err e = opened_run_open(&d, 0, advertise, NULL, NULL, &o->run, et);
	if (e == RV_E_BUSY)
		e = open_online(&d, o, et);
	if (e != RV_OK)
		operator_close(o);
	else
		*out = o;
	return e;
}

void operator_close(struct operator_session *o) {
	if (o == NULL)
		return;
	if (o->online) {
		http_client_free(o->http);
		run_keys_release(&o->keys);
	} else {
		opened_run_close(&o->run);
	}
	free(o);
}

bool operator_is_online(const struct operator_session *o) {
	return o->online;
}

static enum rv_err ask_json(struct operator_session *o, const char *path, json_t **out, struct rv_errtext *et) {
	char *body = NULL;
	json_error_t why;
	RV_TRY(ask(o, path, NULL, &body, et));
	*out = json_loads(body, 0, &why);
	free(body);
	return *out != NULL ? RV_OK : rv_fail(et, RV_E_INVALID, "the coordinator's answer is not JSON: %s", why.text);
}

/* Appends the members of the next page to those of the first. */
static enum rv_err ask_page(struct operator_session *o, json_t *first, uint32_t from, struct rv_errtext *et) {
	char path[64];
	json_t *page = NULL;
	(void)snprintf(path, sizeof path, "/v1/admin/status?from=%u", from);
	RV_TRY(ask_json(o, path, &page, et));
	enum rv_err e = RV_OK;
	if (json_array_extend(json_object_get(first, "members"), json_object_get(page, "members")) != 0 ||
		json_object_set(first, "members_next", json_object_get(page, "members_next")) != 0)
		e = rv_fail(et, RV_E_INVALID, "the coordinator's answer has no members from number %u on", from);
	json_decref(page);
	return e;
}

/* Members that come meanwhile have higher numbers. */
static enum rv_err ask_status(struct operator_session *o, json_t **status, struct rv_errtext *et) {
	const json_t *next;
	RV_TRY(ask_json(o, "/v1/admin/status", status, et));
	enum rv_err e = RV_OK;
	for (int page = 1; e == RV_OK && json_is_integer(next = json_object_get(*status, "members_next")); page++)
		e = page < STATUS_PAGES_MAX
				? ask_page(o, *status, (uint32_t)json_integer_value(next), et)
				: rv_fail(et, RV_E_RANGE, "the status has more than %d pages of members", STATUS_PAGES_MAX);
	if (e == RV_OK) {
		(void)json_object_del(*status, "members_next");
		return RV_OK;
	}
	json_decref(*status);
	*status = NULL;
	return e;
}

enum rv_err operator_status(struct operator_session *o, json_t **status, struct rv_errtext *et) {
	if (!o->online) {
		*status = service_status(o->run.service, rv_clock_monotonic_us(), true);
		return *status != NULL ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for the status");
	}
	return ask_status(o, status, et);
}

enum rv_err operator_config(struct operator_session *o, struct run_config *out, struct rv_errtext *et) {
	char *body = NULL;
	if (!o->online)
		return run_config_parse(out, "the run's configuration", o->run.config, et);
	RV_TRY(ask(o, "/v1/config", NULL, &body, et));
	const enum rv_err e = run_config_parse(out, "the run's configuration", body, et);
	free(body);
	return e;
}

static enum rv_err invite_offline(struct operator_session *o, const struct invite_terms *terms, int count, char **links,
								  struct rv_errtext *et) {
	char(*made)[INVITE_MAX_BYTES] = calloc((size_t)count, sizeof *made);
	char *text = calloc((size_t)count, INVITE_MAX_BYTES + 1);
	enum rv_err e = made != NULL && text != NULL ? service_invite(o->run.service, terms, count, made, et)
												 : rv_fail(et, RV_E_NOMEM, "no memory for %d links", count);
	char *at = text;
	for (int i = 0; e == RV_OK && i < count; i++)
		at += sprintf(at, "%s\n", made[i]);
	free(made);
	if (e != RV_OK)
		free(text);
	else
		*links = text;
	return e;
}

enum rv_err operator_invite(struct operator_session *o, const struct invite_terms *terms, int count, char **links,
							struct rv_errtext *et) {
	char form[128], advertise[NET_ADDR_BYTES];
	if (o->online) {
		(void)snprintf(form, sizeof form, "count=%d&uses=%" PRId64 "&lasts_ms=%" PRId64 "&approve=%d", count,
					   terms->uses, terms->lasts_ms, terms->approve);
		return ask(o, "/v1/admin/invite", form, links, et);
	}
	RV_TRY(o->run.store->ops->get(o->run.store, "advertise", advertise, sizeof advertise, et));
	if (advertise[0] == '\0')
		return rv_fail(et, RV_E_INVALID,
					   "this coordinator was never started, so its address is unknown: start it "
					   "(`serve`), or use --advertise HOST:PORT");
	return invite_offline(o, terms, count, links, et);
}

enum rv_err operator_list_invites(struct operator_session *o, json_t **list, struct rv_errtext *et) {
	return o->online ? ask_json(o, "/v1/admin/invites", list, et) : service_list_invites(o->run.service, list, et);
}

enum rv_err operator_list_askers(struct operator_session *o, json_t **list, struct rv_errtext *et) {
	return o->online ? ask_json(o, "/v1/admin/pending", list, et) : service_list_askers(o->run.service, list, et);
}

void operator_print_list(json_t *list, bool json, void (*print_table)(const json_t *list)) {
	if (json) {
		(void)json_dumpf(list, stdout, JSON_COMPACT);
		(void)fputc('\n', stdout);
	} else {
		print_table(list);
	}
	json_decref(list);
}

/* Ends a decision made offline: its text as a line. */
static enum rv_err decided(enum rv_err e, char **text) {
	if (e == RV_OK) {
		(*text)[strlen(*text)] = '\n';
		return RV_OK;
	}
	free(*text);
	*text = NULL;
	return e;
}

static enum rv_err begin_decision(char **text, struct rv_errtext *et) {
	*text = calloc(1, SERVICE_DECISION_BYTES + 1);
	return *text != NULL ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory");
}

enum rv_err operator_revoke(struct operator_session *o, const char *name, char **text, struct rv_errtext *et) {
	if (o->online)
		return ask(o, "/v1/admin/revoke", name, text, et);
	RV_TRY(begin_decision(text, et));
	return decided(service_revoke(o->run.service, rv_clock_monotonic_us(), name, *text, et), text);
}

enum rv_err operator_decide(struct operator_session *o, const char *prefix, bool approve, char **text,
							struct rv_errtext *et) {
	if (o->online)
		return ask(o, approve ? "/v1/admin/approve" : "/v1/admin/refuse", prefix, text, et);
	RV_TRY(begin_decision(text, et));
	return decided(service_decide(o->run.service, rv_clock_monotonic_us(), prefix, approve, *text, et), text);
}

enum rv_err operator_ban(struct operator_session *o, uint32_t member, bool banned, struct rv_errtext *et) {
	char form[64], *body = NULL;
	if (!o->online)
		return service_ban(o->run.service, rv_clock_monotonic_us(), member, banned, et);
	(void)snprintf(form, sizeof form, "member=%u&banned=%d", member, banned);
	RV_TRY(ask(o, "/v1/admin/ban", form, &body, et));
	free(body);
	return RV_OK;
}

enum rv_err operator_rollback(struct operator_session *o, uint64_t to_round, bool force, char **text,
							  struct rv_errtext *et) {
	char form[64];
	if (o->online) {
		(void)snprintf(form, sizeof form, "to_round=%llu&force=%d", (unsigned long long)to_round, force);
		return ask(o, "/v1/admin/rollback", form, text, et);
	}
	*text = calloc(1, SERVICE_ROLLBACK_BYTES);
	if (*text == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory");
	enum rv_err e = service_rollback(o->run.service, rv_clock_monotonic_us(), to_round, force, *text, et);
	if (e != RV_OK) {
		free(*text);
		*text = NULL;
	}
	return e;
}

/* Asks the coordinator for a copy into `path`, a whole path. */
static enum rv_err ask_for_copy(struct operator_session *o, const char *path, struct rv_errtext *et) {
	struct answer a = {0};
	enum rv_err e = ask_for(o, &(struct question){"/v1/admin/copy", path, REPLY_MAX_BYTES, COPY_TIMEOUT_MS}, &a, et);
	free(a.body);
	return e;
}

/* Replaces the bytes of a file by those of another. */
static enum rv_err take_bytes(const char *from, const char *to, struct rv_errtext *et) {
	static char buffer[1 << 16];
	const int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_TRUNC | O_CLOEXEC);
	enum rv_err e = in >= 0 && out >= 0 ? RV_OK : rv_fail_errno(et, errno, "%s: cannot be copied to %s", from, to);
	for (ssize_t n = 1; e == RV_OK && n > 0;) {
		n = read(in, buffer, sizeof buffer);
		if (n < 0 || (n > 0 && write(out, buffer, (size_t)n) != n))
			e = rv_fail_errno(et, errno, "%s: cannot be copied to %s", from, to);
	}
	(void)close(in);
	if (close(out) != 0 && e == RV_OK)
		e = rv_fail_errno(et, errno, "%s", to);
	return e;
}

/* A copy on its way, in the run's directory. */
static const char between_name[] = "backup.copy";

/* Removes that copy, and what SQLite keeps beside it. */
static void remove_between(const struct operator_session *o) {
	static const char *const ends[] = {"", "-journal"};
	char path[sizeof o->dir + sizeof between_name + sizeof "-journal"];
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		(void)snprintf(path, sizeof path, "%s/%s%s", o->dir, between_name, ends[i]);
		(void)unlink(path);
	}
}

/* Has the store copied into the run's directory, which a coordinator in a sandbox may write, and
 * moves the copy. */
static enum rv_err copy_by_way_of_the_run(struct operator_session *o, const char *path, struct rv_errtext *et) {
	char *dir = realpath(o->dir, NULL), between[PATH_MAX + sizeof between_name];
	if (!dir)
		return rv_fail_errno(et, errno, "%s", o->dir);
	(void)snprintf(between, sizeof between, "%s/%s", dir, between_name);
	free(dir);
	const int fd = open(between, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s", between);
	(void)close(fd);
	enum rv_err e = ask_for_copy(o, between, et);
	if (e == RV_OK)
		e = take_bytes(between, path, et);
	remove_between(o);
	return e;
}

/* A backup that was killed may have left the copy on its way: it is removed whichever way this one
 * takes, when the coordinator has answered and so is done with the killed one's. */
enum rv_err operator_copy_store(struct operator_session *o, const char *path, struct rv_errtext *et) {
	if (!o->online) {
		remove_between(o);
		return service_copy_store(o->run.service, path, et);
	}
	char *whole = realpath(path, NULL);
	if (whole == NULL)
		return rv_fail_errno(et, errno, "%s: its whole path cannot be found", path);
	enum rv_err e = ask_for_copy(o, whole, et);
	remove_between(o);
	if (e == RV_E_INVALID && copy_by_way_of_the_run(o, whole, NULL) == RV_OK)
		e = RV_OK;
	free(whole);
	if (e == RV_E_NOTFOUND)
		return rv_fail_context(et, e, "is %s another folder for the coordinator (a container)? Then run this there",
							   path);
	return e;
}
