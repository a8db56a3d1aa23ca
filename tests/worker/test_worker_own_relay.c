/* test_worker_own_relay.c: the relay that a worker runs for others, in its thread: it forwards
 * between members of the run within its budget, refuses banned ones, and has a port. */
#include "worker/own_relay/own_relay.h"

#include "tests/common/check.h"
#include "tests/coordinator/relay_client.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RATE = 1 << 30, WAIT_US = 10000, WAITS = 12000 };

struct world {
	struct own_relay *relay;
	struct identity id;
	struct relay_process p; /* where it is, for clients */
	struct relay_station s[2];
};

static void open_relay(struct world *w, uint64_t bytes_per_day) {
	const uint8_t seed[IDENTITY_SEED_BYTES] = {1}, run[IDENTITY_SEED_BYTES] = {2};
	memset(w, 0, sizeof *w);
	identity_of_seed(seed, &w->id);
	identity_of_seed(run, &w->p.run);
	struct own_relay_config cfg = {.identity = &w->id, .bytes_per_s = RATE, .bytes_per_day = bytes_per_day};
	memcpy(cfg.root, w->p.run.key, NET_KEY_BYTES);
	assert_ok(own_relay_start(&cfg, &w->relay, &et));
	w->p.port = own_relay_port(w->relay);
	memcpy(w->p.key, w->id.key, NET_KEY_BYTES);
	w->p.run_id[0] = 3;
}

static void open_stations(struct world *w) {
	for (uint32_t i = 0; i < 2; i++)
		assert_true(relay_station_open(&w->s[i], &w->p, i, NULL, &w->p.run));
}

static void close_world(struct world *w) {
	for (int i = 0; i < 2; i++)
		if (w->s[i].ssl != NULL)
			relay_station_close(&w->s[i]);
	(void)own_relay_stop(w->relay);
}

/* Waits until the figures, which the thread renews, are these. */
static void await(struct world *w, uint32_t stations, uint32_t links, uint64_t bytes) {
	struct own_relay_figures f = {0};
	for (int i = 0; i < WAITS; i++) {
		f = own_relay_look(w->relay);
		if (f.stations == stations && f.links == links && f.bytes == bytes)
			return;
		(void)usleep(WAIT_US);
	}
	fail_msg("%u stations, %u links, %llu bytes", f.stations, f.links, (unsigned long long)f.bytes);
}

static void assert_closed(int fd) {
	uint8_t byte;
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	(void)close(fd);
}

static void it_forwards_for_members(void **state) {
	(void)state;
	struct world w;
	int ends[2];
	char got[2];
	open_relay(&w, 0);
	open_stations(&w);
	assert_true(w.s[0].second_port != 0 && w.s[0].second_port != w.p.port);
	relay_link(&w.s[0], &w.s[1], &w.p, ends);
	assert_int_equal(send(ends[0], "xy", 2, 0), 2);
	assert_int_equal(recv(ends[1], got, 2, MSG_WAITALL), 2);
	await(&w, 2, 1, 2);
	own_relay_ban(w.relay, &(struct banned){1, {1}});
	assert_closed(ends[0]);
	assert_closed(ends[1]);
	await(&w, 1, 0, 2);
	close_world(&w);
}

/* A second port that the router does not map is named to nobody. */
static void it_names_the_second_port_that_others_reach(void **state) {
	(void)state;
	static const uint16_t named[] = {0, 40036};
	struct world w;
	open_relay(&w, 0);
	assert_int_not_equal(own_relay_second_port(w.relay), 0);
	for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
		own_relay_name_second(w.relay, named[i]);
		bool is_named = false;
		for (int n = 0; n < WAITS && !is_named; n++) { /* from a turn of the thread on */
			assert_true(relay_station_open(&w.s[0], &w.p, 0, NULL, &w.p.run));
			is_named = w.s[0].second_port == named[i];
			relay_station_close(&w.s[0]);
			(void)usleep(WAIT_US);
		}
		assert_true(is_named);
	}
	w.s[0] = (struct relay_station){0};
	close_world(&w);
}

static void its_budget_of_the_day_holds_for_all(void **state) {
	(void)state;
	struct world w;
	struct relay_frame m;
	int ends[2];
	open_relay(&w, 3);
	open_stations(&w);
	relay_link(&w.s[0], &w.s[1], &w.p, ends);
	assert_int_equal(send(ends[0], "wxyz", 4, 0), 4);
	await(&w, 2, 0, 3);
	(void)close(ends[0]);
	(void)close(ends[1]);
	relay_station_call(&w.s[1], &w.p, &w.s[0], 1);
	assert_true(relay_station_read(&w.s[1], &m));
	assert_int_equal(m.type, RELAY_REFUSED);
	assert_int_equal(m.refused.reason, RELAY_REFUSE_BUDGET);
	close_world(&w);
}

static void a_second_one_takes_the_next_port(void **state) {
	(void)state;
	struct world a, b;
	open_relay(&a, 0);
	open_relay(&b, 0);
	assert_true(own_relay_port(a.relay) != own_relay_port(b.relay));
	struct own_relay_config cfg = {.identity = &a.id, .bytes_per_s = RATE, .port = own_relay_port(a.relay)};
	struct own_relay *none;
	struct rv_errtext et;
	assert_int_equal(own_relay_start(&cfg, &none, &et), RV_E_BUSY);
	assert_null(none);
	assert_non_null(strstr(et.text, "--relay-for-others-port"));
	close_world(&a);
	close_world(&b);
}

static void stations_end_with_it(void **state) {
	(void)state;
	struct world w;
	struct relay_frame m;
	open_relay(&w, 0);
	open_stations(&w);
	assert_int_equal(own_relay_stop(w.relay).stations, 2);
	w.relay = NULL;
	assert_false(relay_station_read(&w.s[0], &m));
	close_world(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_forwards_for_members),
		cmocka_unit_test(it_names_the_second_port_that_others_reach),
		cmocka_unit_test(its_budget_of_the_day_holds_for_all),
		cmocka_unit_test(a_second_one_takes_the_next_port),
		cmocka_unit_test(stations_end_with_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
