/* local_server.h and local_client.h: a worker's page and commands, asked over real sockets, by its
 * owner and by others. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "worker/local/local_client.h"
#include "worker/local/local_commands.h"
#include "worker/local/local_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[SCRATCH_PATH];
static struct local_server *server;
static struct local_place place;

/* ---- an owner that carries commands out ---- */

static struct owner {
	pthread_t thread;
	bool runs;
	int stop[2];
	int paused_s;
} owner;

static enum rv_err run_pause(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	struct owner *o = ctx;
	const json_int_t s = json_integer_value(json_object_get(request, "seconds"));
	if (s < 0)
		return rv_fail(et, RV_E_RANGE, "seconds: must not be negative");
	o->paused_s = (int)s;
	(void)snprintf(text, LOCAL_TEXT_BYTES, "paused for %d s", o->paused_s);
	return RV_OK;
}

static const struct local_command commands[] = {{"pause", run_pause}, {.name = NULL}};

static void publish_pause(void *ctx) {
	const struct owner *o = ctx;
	local_server_publish(server, json_pack("{s:s, s:i}", "state", "paused", "round", o->paused_s));
}

static void *own(void *ctx) {
	struct owner *o = ctx;
	struct mailbox *m = local_server_mailbox(server);
	struct pollfd fds[] = {{.fd = mailbox_owner_fd(m), .events = POLLIN}, {.fd = o->stop[0], .events = POLLIN}};
	while (poll(fds, 2, -1) >= 0 && !fds[1].revents)
		local_commands_serve(m, commands, o, publish_pause);
	return NULL;
}

static void start_owner(void) {
	owner = (struct owner){.runs = true};
	assert_int_equal(pipe(owner.stop), 0);
	assert_int_equal(pthread_create(&owner.thread, NULL, own, &owner), 0);
}

static void stop_owner(void) {
	if (!owner.runs)
		return;
	assert_int_equal(write(owner.stop[1], "", 1), 1);
	assert_int_equal(pthread_join(owner.thread, NULL), 0);
	(void)close(owner.stop[0]);
	(void)close(owner.stop[1]);
	owner.runs = false;
}

/* ---- a client that says whatever it likes ---- */

static int dial(void) {
	const struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(place.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
	return fd;
}

/* Sends `head` (lines that end with \r\n, PORT and TOKEN replaced) and a body; returns the status
 * of the answer. `got` gets its beginning. */
static int raw(const char *head, const char *body, char *got, size_t cap) {
	char text[4096], port[8], *at;
	(void)snprintf(text, sizeof text, "%s%s%zu\r\nConnection: close\r\n\r\n%s", head, "Content-Length: ", strlen(body),
				   body);
	(void)snprintf(port, sizeof port, "%05u", place.port);
	while ((at = strstr(text, "PORT0")))
		memcpy(at, port, 5);
	while ((at = strstr(text, "TOKEN___________________________")))
		memcpy(at, place.token, 32);
	int fd = dial(), status = 0;
	assert_int_equal(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	size_t n = 0;
	for (ssize_t more; n + 1 < cap && (more = recv(fd, got + n, cap - 1 - n, 0)) > 0;)
		n += (size_t)more;
	got[n] = '\0';
	(void)close(fd);
	(void)sscanf(got, "HTTP/1.%*d %d", &status);
	return status;
}

static int status_of(const char *head, const char *body) {
	char got[2048];
	return raw(head, body, got, sizeof got);
}

#define HOST  "Host: 127.0.0.1:PORT0\r\n"
#define AUTH  "Authorization: Bearer TOKEN___________________________\r\n"
#define POST  "POST /v1/command HTTP/1.1\r\n"
#define PAUSE "{\"command\": \"pause\", \"seconds\": 7}"

static int set_up(void **state) {
	(void)state;
	assert_ok(local_server_new(dir, 0, &server, &et));
	assert_ok(local_file_read(dir, &place, &et));
	assert_true(place.port >= 10000); /* PORT0 has five digits */
	start_owner();
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	stop_owner();
	local_server_free(server);
	return 0;
}

/* ---- tests ---- */

static void test_the_owner_reads_and_commands(void **state) {
	(void)state;
	json_t *status = NULL;
	char text[LOCAL_TEXT_BYTES];
	struct rv_errtext why = {0};
	local_server_publish(server, json_pack("{s:s, s:i}", "state", "training", "round", 7));
	assert_ok(local_client_status(dir, &status, &et));
	assert_int_equal(json_integer_value(json_object_get(status, "round")), 7);
	json_decref(status);
	assert_ok(local_client_command(dir, json_pack("{s:s, s:i}", "command", "pause", "seconds", 30), text, &et));
	assert_string_equal(text, "paused for 30 s");
	assert_int_equal(owner.paused_s, 30);
	assert_ok(local_client_status(dir, &status, &et)); /* the one of after the command */
	assert_int_equal(json_integer_value(json_object_get(status, "round")), 30);
	json_decref(status);
	assert_int_equal(local_client_command(dir, json_pack("{s:s, s:i}", "command", "pause", "seconds", -1), text, &why),
					 RV_E_INVALID);
	assert_non_null(strstr(why.text, "seconds: must not be negative"));
	assert_int_equal(local_client_command(dir, json_pack("{s:s}", "command", "puase"), text, &why), RV_E_INVALID);
	assert_non_null(strstr(why.text, "did you mean pause?"));
}

/* Only the owner of the directory reads the token. */
static void test_the_file_is_secret(void **state) {
	(void)state;
	char path[SCRATCH_PATH + 16];
	struct stat st;
	(void)snprintf(path, sizeof path, "%s/" LOCAL_FILE, dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* The page shows nothing without the token, and loads nothing from elsewhere. */
static void test_the_page_is_open_and_empty(void **state) {
	(void)state;
	char got[16384];
	assert_int_equal(raw("GET / HTTP/1.1\r\n" HOST, "", got, sizeof got), 200);
	assert_non_null(strstr(got, "Content-Security-Policy: default-src 'none'"));
	assert_non_null(strstr(got, "frame-ancestors 'none'"));
	assert_non_null(strstr(got, "Am I contributing?"));
	assert_null(strstr(got, place.token));
	assert_int_equal(raw("GET /page.js HTTP/1.1\r\n" HOST, "", got, sizeof got), 200);
	assert_int_equal(raw("GET /page.css HTTP/1.1\r\n" HOST, "", got, sizeof got), 200);
	assert_int_equal(status_of("GET /v1/status HTTP/1.1\r\n" HOST, ""), 401);
	assert_int_equal(status_of("GET /v1/chart HTTP/1.1\r\n" HOST, ""), 401);
	assert_int_equal(status_of("GET /v1/status HTTP/1.1\r\n" HOST AUTH, ""), 200);
}

/* A page whose name was made to resolve to 127.0.0.1 after it was loaded. */
static void test_a_rebound_name_is_refused(void **state) {
	(void)state;
	assert_int_equal(status_of("GET / HTTP/1.1\r\nHost: evil.example:PORT0\r\n", ""), 403);
	assert_int_equal(status_of("GET /v1/status HTTP/1.1\r\nHost: evil.example:PORT0\r\n" AUTH, ""), 403);
	assert_int_equal(status_of("GET http://127.0.0.1:PORT0/v1/status HTTP/1.1\r\nHost: evil.example\r\n" AUTH, ""),
					 403);
	assert_int_equal(status_of("GET /v1/status HTTP/1.1\r\n" HOST "Host: evil.example:PORT0\r\n" AUTH, ""), 403);
	assert_int_equal(status_of("GET /v1/status HTTP/1.0\r\n" AUTH, ""), 403);
}

/* A form, or a script, of another page that knows the port. */
static void test_another_page_commands_nothing(void **state) {
	(void)state;
	assert_int_equal(status_of(POST HOST "Content-Type: text/plain\r\n", PAUSE), 401);
	assert_int_equal(status_of(POST HOST "Origin: http://evil.example\r\nContent-Type: text/plain\r\n", PAUSE), 403);
	assert_int_equal(status_of(POST HOST "Origin: null\r\n" AUTH, PAUSE), 403);
	assert_int_equal(status_of(POST HOST "Sec-Fetch-Site: cross-site\r\n" AUTH, PAUSE), 403);
	assert_int_equal(status_of(POST HOST "Origin: http://127.0.0.1:1\r\n" AUTH, PAUSE), 403);
	/* What a browser asks before it sends a header such as Authorization elsewhere. */
	assert_true(status_of("OPTIONS /v1/command HTTP/1.1\r\n" HOST "Origin: http://evil.example\r\n", "") >= 400);
	assert_int_equal(owner.paused_s, 0);
	assert_int_equal(status_of(POST HOST AUTH "Origin: http://127.0.0.1:PORT0\r\n", PAUSE), 200);
	assert_int_equal(owner.paused_s, 7);
}

static void test_what_is_malformed_is_refused(void **state) {
	(void)state;
	char *deep = malloc(4097);
	memset(deep, '[', 2000);
	deep[2000] = '\0';
	assert_int_equal(status_of(POST HOST AUTH, ""), 400);
	assert_int_equal(status_of(POST HOST AUTH, "{"), 400);
	assert_int_equal(status_of(POST HOST AUTH, "[\"pause\"]"), 400);
	assert_int_equal(status_of(POST HOST AUTH, "{\"command\": 7}"), 400);
	assert_int_equal(status_of(POST HOST AUTH, deep), 400);
	assert_int_equal(status_of("GET /v1/nothing HTTP/1.1\r\n" HOST AUTH, ""), 404);
	assert_int_equal(status_of("GET /v1/command HTTP/1.1\r\n" HOST AUTH, ""), 405);
	assert_int_equal(status_of("GET /v1/chart?width=x HTTP/1.1\r\n" HOST AUTH, ""), 400);
	assert_int_equal(owner.paused_s, 0);
	free(deep);
}

/* Clients that go away while their commands wait: the server goes on. */
static void test_clients_that_leave(void **state) {
	(void)state;
	char text[512];
	stop_owner();
	const int n = snprintf(text, sizeof text,
						   "POST /v1/command HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAuthorization: Bearer %s\r\n"
						   "Content-Length: %zu\r\n\r\n%s",
						   place.port, place.token, strlen(PAUSE), PAUSE);
	int fds[MAILBOX_MOST];
	for (int i = 0; i < MAILBOX_MOST; i++) {
		fds[i] = dial();
		assert_int_equal(send(fds[i], text, (size_t)n, 0), n);
	}
	for (int i = 0; i < MAILBOX_MOST; i++)
		(void)close(fds[i]);
	json_t *status = NULL;
	assert_ok(local_client_status(dir, &status, &et));
	json_decref(status);
}

static void test_the_chart_has_both_curves(void **state) {
	(void)state;
	char got[65536];
	local_server_publish(server, json_pack("{s:[[i,f],[i,f]], s:[[i,f],[i,f],[i,f]]}", "heldout", 1, 5.0, 3, 4.5,
										   "training", 1, 5.1, 2, 4.8, 3, 4.4));
	assert_int_equal(raw("GET /v1/chart?width=600 HTTP/1.1\r\n" HOST AUTH, "", got, sizeof got), 200);
	assert_non_null(strstr(got, "<svg"));
	assert_non_null(strstr(got, "held-out text"));
	assert_non_null(strstr(got, "my training"));
}

static void test_nothing_runs(void **state) {
	(void)state;
	char empty[SCRATCH_PATH], text[LOCAL_TEXT_BYTES];
	json_t *status = NULL;
	struct rv_errtext why = {0};
	scratch_make(empty, sizeof empty);
	assert_int_equal(local_client_status(empty, &status, &why), RV_E_NOTFOUND);
	assert_non_null(strstr(why.text, "no worker runs in"));
	struct local_server *other;
	assert_ok(local_server_new(empty, 0, &other, &et));
	struct local_place before, after;
	assert_ok(local_file_read(empty, &before, &et));
	local_server_free(other);
	assert_int_equal(local_client_command(empty, json_pack("{s:s}", "command", "pause"), text, &why), RV_E_NOTFOUND);
	/* The next start has the same port, if it is free, and another token. */
	assert_ok(local_server_new(empty, 0, &other, &et));
	assert_ok(local_file_read(empty, &after, &et));
	assert_int_equal(before.port, after.port);
	assert_string_not_equal(before.token, after.token);
	struct local_server *third = NULL;
	assert_int_equal(local_server_new(empty, after.port, &third, &why), RV_E_BUSY);
	local_server_free(other);
	scratch_write(empty, LOCAL_FILE, "{}", 2);
	assert_int_equal(local_client_status(empty, &status, &why), RV_E_CORRUPT);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_owner_reads_and_commands, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_file_is_secret, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_page_is_open_and_empty, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_rebound_name_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_page_commands_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_malformed_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_clients_that_leave, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_chart_has_both_curves, set_up, tear_down),
		cmocka_unit_test(test_nothing_runs)};
	scratch_make(dir, sizeof dir);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
