/* This machine loses its address and gets another one: who notices, and how soon
 * (base/os_address_watch.h, http_client_drop_stranded). In a network namespace of the test's own;
 * where none can be made, it is skipped. */
#include "base/os_address_watch.h"
#include "net/http_client.h"
#include "tests/common/check.h"
#include "web_server.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t run_id[NET_RUN_ID_BYTES] = {5};

#define FIRST  "127.0.0.1"
#define SECOND "10.9.9.9"

/* Takes the place of the address that the loopback device has. */
static void set_address(const char *text) {
	struct ifreq rq = {.ifr_name = "lo"};
	struct sockaddr_in *sa = (struct sockaddr_in *)&rq.ifr_addr;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(fd >= 0);
	sa->sin_family = AF_INET;
	assert_int_equal(inet_pton(AF_INET, text, &sa->sin_addr), 1);
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &rq), 0);
	rq.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &rq), 0);
	close(fd);
}

static void enter_namespace(void) {
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		skip();
	set_address(FIRST);
}

static void changes_are_told_once(void **state) {
	(void)state;
	enter_namespace();
	int fd = os_address_watch_open();
	assert_true(fd >= 0);
	assert_false(os_address_watch_take(fd));
	for (int i = 0; i < 3; i++) {
		set_address(i % 2 == 0 ? SECOND : FIRST);
		assert_true(os_address_watch_take(fd));
		assert_false(os_address_watch_take(fd));
	}
	close(fd);
}

/* ---- a request that is under way ---- */

static void hang(void *ctx, const struct web_request *rq, struct web_reply *reply) {
	(void)ctx;
	reply->hang = strcmp(rq->path, "/hang") == 0;
}

struct outcome {
	int calls;
	enum rv_err err;
};

static void note(void *ctx, const struct http_reply *reply) {
	struct outcome *out = ctx;
	out->calls++;
	out->err = reply->err;
}

static void ask(struct http_client *c, const char *path, struct outcome *out) {
	const struct http_request rq = {.path = path, .max_reply_bytes = 1000, .done = note, .ctx = out};
	*out = (struct outcome){0};
	assert_ok(http_client_start(c, &rq, NULL, &et));
}

static void poll_until_done(struct http_client *c, const struct outcome *out) {
	while (out->calls == 0)
		assert_int_equal(http_client_poll(c, NULL, 0, 100 * 1000, NULL), RV_OK);
}

/* As after the machine slept: the address is there, and so is the connection. */
static void a_request_ends_when_all_connections_are_dropped(void **state) {
	(void)state;
	static const uint8_t seeds[2][IDENTITY_SEED_BYTES] = {{1}, {2}};
	struct identity worker, run;
	struct web_server server;
	struct http_client *c;
	struct outcome held, out;
	identity_of_seed(seeds[0], &worker);
	identity_of_seed(seeds[1], &run);
	web_start(&server, &run, hang, NULL);
	struct http_client_config cfg = {.server = {.host = FIRST, .port = server.port}, .identity = &worker};
	cfg.trust = run_trust_of(run_id, run.key);
	assert_int_equal(http_client_new(&cfg, &c, NULL), RV_OK);
	ask(c, "/hang", &held);
	ask(c, "/", &out);
	poll_until_done(c, &out);
	assert_int_equal(held.calls, 0);
	http_client_drop_all(c);
	poll_until_done(c, &held);
	assert_int_not_equal(held.err, RV_OK);
	ask(c, "/", &out);
	poll_until_done(c, &out);
	assert_int_equal(out.err, RV_OK);
	http_client_free(c);
	web_stop(&server);
	identity_release(&worker);
	identity_release(&run);
}

static void a_request_from_a_lost_address_ends_at_once(void **state) {
	(void)state;
	static const uint8_t seeds[2][IDENTITY_SEED_BYTES] = {{1}, {2}};
	struct identity worker, run;
	struct web_server server;
	struct http_client *c;
	struct outcome out, held;
	struct address met;
	enter_namespace();
	identity_of_seed(seeds[0], &worker);
	identity_of_seed(seeds[1], &run);
	web_start(&server, &run, hang, NULL);
	struct http_client_config cfg = {.server = {.host = FIRST, .port = server.port}, .identity = &worker};
	cfg.trust = run_trust_of(run_id, run.key);
	assert_int_equal(http_client_new(&cfg, &c, NULL), RV_OK);
	assert_false(http_client_met(c, &met));
	ask(c, "/", &out);
	poll_until_done(c, &out);
	assert_int_equal(out.err, RV_OK);
	assert_true(http_client_met(c, &met));
	assert_string_equal(met.host, FIRST);
	assert_int_equal(met.port, server.port);

	ask(c, "/hang", &held);
	ask(c, "/", &out); /* so the other is under way, too */
	poll_until_done(c, &out);
	http_client_drop_stranded(c);
	assert_int_equal(http_client_poll(c, NULL, 0, 0, NULL), RV_OK);
	assert_int_equal(held.calls, 0); /* the address is there */
	set_address(SECOND);
	http_client_drop_stranded(c);
	poll_until_done(c, &held);
	assert_int_not_equal(held.err, RV_OK);
	http_client_free(c);
	set_address(FIRST); /* the server's threads wait for their clients */
	web_stop(&server);
	identity_release(&worker);
	identity_release(&run);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_ends_when_all_connections_are_dropped),
		cmocka_unit_test(changes_are_told_once),
		cmocka_unit_test(a_request_from_a_lost_address_ends_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
