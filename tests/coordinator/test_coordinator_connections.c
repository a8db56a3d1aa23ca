/* The connections of the web server, over sockets of this process: no memory is no crash, and no
 * address has them all. */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "coordinator/web/connections.h"
#include "net/address.h"
#include "net/identity.h"
#include "net/tls.h"
#include "tests/common/check.h"

enum { MAX = 40, PER_HOST = MAX / 4, MADE_MAX = 64, END_MS = 60000 };

static bool out_of_memory;

static void *limited_malloc(size_t n) {
	return out_of_memory ? NULL : malloc(n);
}

struct scene {
	struct identity id;
	SSL_CTX *tls;
	struct event_base *base;
	struct connections *all;
	int listen_fd;
	bool full;
	struct bufferevent *made[MADE_MAX];
	int far[MADE_MAX], n_made;
};

static void on_full(void *scene, bool full) {
	((struct scene *)scene)->full = full;
}

static int set_up(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	struct address at = {.host = "127.0.0.1"};
	struct sockaddr_storage sa;
	socklen_t n;
	identity_of_seed((const uint8_t[IDENTITY_SEED_BYTES]){1}, &s->id);
	assert_int_equal(tls_context_new(&s->id, TLS_CLIENTS_MAY, &s->tls, NULL), RV_OK);
	assert_non_null(s->base = event_base_new());
	assert_int_equal(connections_new(s->tls, MAX, on_full, s, &s->all, NULL), RV_OK);
	assert_true((s->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
	assert_true(address_to_socket(&at, &sa, &n));
	assert_int_equal(bind(s->listen_fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(s->listen_fd, MADE_MAX), 0);
	*state = s;
	return 0;
}

static int tear_down(void **state) {
	struct scene *s = *state;
	for (int i = 0; i < s->n_made; i++) {
		bufferevent_free(s->made[i]);
		(void)close(s->far[i]);
	}
	(void)event_base_loop(s->base, EVLOOP_NONBLOCK); /* frees are deferred */
	event_base_free(s->base);
	connections_free(s->all);
	SSL_CTX_free(s->tls);
	(void)close(s->listen_fd);
	identity_release(&s->id);
	free(s);
	return 0;
}

/* What evhttp does: the bufferevent first, its socket then. */
static void accept_one(struct scene *s) {
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(getsockname(s->listen_fd, (struct sockaddr *)&sa, &n), 0);
	assert_int_equal(connect(far, (struct sockaddr *)&sa, n), 0);
	int near = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(near >= 0);
	struct bufferevent *bev = connections_make(s->base, s->all);
	assert_non_null(bev);
	assert_int_equal(bufferevent_setfd(bev, near), 0);
	s->made[s->n_made] = bev;
	s->far[s->n_made++] = far;
}

/* The far side has been told the end. */
static bool has_ended(const struct scene *s, int i) {
	char byte;
	return recv(s->far[i], &byte, 1, MSG_DONTWAIT) == 0;
}

/* Which the kernel may do a moment later. */
static void expect_end(const struct scene *s, int i) {
	struct pollfd p = {.fd = s->far[i], .events = POLLIN};
	assert_int_equal(poll(&p, 1, END_MS), 1);
	assert_true(has_ended(s, i));
}

static void test_one_address_gets_its_share_only(void **state) {
	struct scene *s = *state;
	for (int i = 0; i < PER_HOST; i++)
		accept_one(s);
	connections_sweep(s->all, rv_clock_monotonic_us());
	for (int i = 0; i < PER_HOST; i++)
		assert_false(has_ended(s, i));
	accept_one(s);
	accept_one(s);
	connections_sweep(s->all, rv_clock_monotonic_us());
	for (int i = 0; i < 2; i++) /* the oldest made room */
		expect_end(s, i);
	for (int i = 2; i < PER_HOST + 2; i++)
		assert_false(has_ended(s, i));
	assert_false(s->full);
}

static void test_slow_ones_are_ended(void **state) {
	struct scene *s = *state;
	const int64_t before_us = rv_clock_monotonic_us();
	accept_one(s);
	connections_sweep(s->all, before_us + 14 * RV_US_PER_S);
	assert_false(has_ended(s, 0));
	connections_sweep(s->all, rv_clock_monotonic_us() + 16 * RV_US_PER_S);
	expect_end(s, 0);
}

/* The connection is given up and not counted, and the next one works. (libevent itself is not safe
 * against every allocation that fails: this is the largest one.) */
static void test_no_memory_is_no_crash(void **state) {
	struct scene *s = *state;
	out_of_memory = true;
	struct bufferevent *bev = connections_make(s->base, s->all);
	out_of_memory = false;
	assert_null(bev);
	assert_int_equal(connections_count(s->all), 0);
	accept_one(s);
	assert_int_equal(connections_count(s->all), 1);
}

int main(void) {
	event_set_mem_functions(limited_malloc, realloc, free);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_address_gets_its_share_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_slow_ones_are_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_memory_is_no_crash, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
