/* local_client.c: see local_client.h. */
#include "worker/local/local_client.h"

#include "net/http_server/reply.h"
#include "worker/local/local_server.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_MOST_BYTES = 1 << 20, CONNECT_TIMEOUT_S = 5, SPARE_S = 5 };

struct got {
	char *text; /* NUL-terminated */
	size_t n;
	long status; /* of HTTP */
};

static size_t take(char *data, size_t one, size_t n, void *got) {
	struct got *g = got;
	(void)one; /* 1, by curl's promise */
	char *grown = g->n + n < REPLY_MOST_BYTES ? realloc(g->text, g->n + n + 1) : NULL;
	if (!grown)
		return 0; /* curl ends the request */
	memcpy(grown + g->n, data, n);
	g->text = grown;
	g->n += n;
	g->text[g->n] = '\0';
	return n;
}

static enum rv_err no_worker(enum rv_err e, const char *dir, struct rv_errtext *et) {
	return rv_fail(et, e, "no worker runs in %s now: start it with rivulet-worker --dir %s, or name its --dir", dir,
				   dir);
}

static enum rv_err find_place(const char *dir, struct local_place *place, struct rv_errtext *et) {
	enum rv_err e = local_file_read(dir, place, et);
	return e == RV_E_NOTFOUND ? no_worker(e, dir, et) : e;
}

/* Sends the request; `body` NULL: GET. */
static CURLcode perform(CURL *c, const struct local_place *place, const char *path, const char *body, struct got *got) {
	char url[LOCAL_URL_BYTES], token[64];
	(void)snprintf(url, sizeof url, "http://127.0.0.1:%u%s", place->port, path);
	(void)snprintf(token, sizeof token, "Authorization: Bearer %s", place->token);
	struct curl_slist *headers = curl_slist_append(NULL, token);
	CURLcode rc = headers ? CURLE_OK : CURLE_OUT_OF_MEMORY;
	(void)curl_easy_setopt(c, CURLOPT_URL, url);
	(void)curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	(void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
	(void)curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)(LOCAL_COMMAND_S + SPARE_S));
	(void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(c, CURLOPT_WRITEDATA, got);
	if (body)
		(void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
	if (rc == CURLE_OK)
		rc = curl_easy_perform(c);
	(void)curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &got->status);
	curl_slist_free_all(headers);
	return rc;
}

static enum rv_err fault_of(CURLcode rc, const char *dir, struct rv_errtext *et) {
	switch (rc) {
	case CURLE_OK:
		return RV_OK;
	case CURLE_COULDNT_CONNECT:
		return no_worker(RV_E_NOTFOUND, dir, et);
	case CURLE_OUT_OF_MEMORY:
		return rv_fail(et, RV_E_NOMEM, "no memory to ask the worker");
	default:
		return rv_fail(et, RV_E_IO, "the worker in %s does not answer: %s", dir, curl_easy_strerror(rc));
	}
}

static enum rv_err parse(const struct got *got, const char *dir, json_t **out, struct rv_errtext *et) {
	if (got->status == STATUS_UNAUTHORIZED)
		return rv_fail(et, RV_E_AUTH,
					   "the worker in %s does not accept the token of " LOCAL_FILE
					   ": it was started again, or another program has its port; try again",
					   dir);
	*out = got->text ? json_loadb(got->text, got->n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (got->status == STATUS_OK && json_is_object(*out))
		return RV_OK;
	json_decref(*out);
	*out = NULL;
	return rv_fail(et, RV_E_PROTOCOL, "what answers for the worker in %s: %.200s (HTTP %ld)", dir,
				   got->text ? got->text : "nothing", got->status);
}

static enum rv_err ask(const char *dir, const char *path, const char *body, json_t **out, struct rv_errtext *et) {
	struct local_place place;
	struct got got = {0};
	*out = NULL;
	RV_TRY(find_place(dir, &place, et));
	CURL *c = curl_easy_init();
	enum rv_err e = c ? fault_of(perform(c, &place, path, body, &got), dir, et)
					  : rv_fail(et, RV_E_NOMEM, "no memory to ask the worker");
	curl_easy_cleanup(c);
	if (e == RV_OK)
		e = parse(&got, dir, out, et);
	free(got.text);
	return e;
}

enum rv_err local_client_status(const char *dir, json_t **out, struct rv_errtext *et) {
	return ask(dir, "/v1/status", NULL, out, et);
}

enum rv_err local_client_command(const char *dir, json_t *command, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	char *body = command ? json_dumps(command, JSON_COMPACT) : NULL;
	json_t *answer = NULL;
	json_decref(command);
	text[0] = '\0';
	enum rv_err e =
		body ? ask(dir, "/v1/command", body, &answer, et) : rv_fail(et, RV_E_NOMEM, "no memory to ask the worker");
	free(body);
	RV_TRY(e);
	const char *said = json_string_value(json_object_get(answer, "text"));
	(void)snprintf(text, LOCAL_TEXT_BYTES, "%s", said ? said : "");
	if (!json_is_true(json_object_get(answer, "ok")))
		e = rv_fail(et, RV_E_INVALID, "%s", text[0] ? text : "the worker refused, without a reason");
	json_decref(answer);
	return e;
}

enum rv_err local_client_url(const char *dir, char out[LOCAL_URL_BYTES], struct rv_errtext *et) {
	struct local_place place;
	RV_TRY(find_place(dir, &place, et));
	local_file_url(&place, out);
	return RV_OK;
}
