/* A laptop that changes from cable to wireless: its links are made from the address that it has
 * now. Two hosts with two lines between them, in network namespaces of the test's own; where none
 * can be made, it is skipped. */
#include "base/os_address_watch.h"
#include "mesh_world.h"
#include "tests/common/check.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MS = 1000, S = 1000 * MS, SILENT_US = 2 * S, BULK_BYTES = 66560, MANY_FRAMES = 100000, LAPTOP = 0, OTHER = 1 };

#define OTHER_HOST "10.99.0.1"

/* ---- two hosts ---- */

static struct {
	pid_t other; /* a process that keeps the other host's namespace */
	int ns[2];
} hosts;

static void at(int host) {
	assert_int_equal(setns(hosts.ns[host], CLONE_NEWNET), 0);
}

static void run(const char *command) {
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

static void keep_namespace(int ready) {
	char byte = 1;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || unshare(CLONE_NEWNET) != 0 || write(ready, &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static int open_namespace(pid_t pid) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void line(const char *name, int number) {
	char command[1024];
	at(LAPTOP);
	snprintf(command, sizeof command,
			 "ip link add %s type veth peer name %sB && ip link set %sB netns %d && "
			 "ip addr add 10.%d.0.1/24 dev %s && ip link set %s up",
			 name, name, name, (int)hosts.other, number, name, name);
	run(command);
	at(OTHER);
	snprintf(command, sizeof command, "ip addr add 10.%d.0.2/24 dev %sB && ip link set %sB up", number, name, name);
	run(command);
	at(LAPTOP);
	snprintf(command, sizeof command, "ip route add " OTHER_HOST " via 10.%d.0.2 metric %d", number, 10 * number);
	run(command);
}

static bool make_namespaces(void) {
	int ready[2];
	char byte;
	if (system("ip -V >/dev/null 2>&1") != 0 ||
		(unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0))
		return false;
	assert_int_equal(pipe(ready), 0);
	hosts.other = fork();
	assert_true(hosts.other >= 0);
	if (hosts.other == 0)
		keep_namespace(ready[1]);
	close(ready[1]);
	bool made = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	hosts.ns[LAPTOP] = open_namespace(getpid());
	hosts.ns[OTHER] = open_namespace(hosts.other);
	return made;
}

static void set_up(void) {
	if (!make_namespaces())
		skip();
	at(OTHER);
	run("ip link set lo up && ip addr add " OTHER_HOST "/32 dev lo");
	line("cable", 1);
	line("wlan", 2);
}

static void tear_down(void) {
	kill(hosts.other, SIGKILL);
	waitpid(hosts.other, NULL, 0);
	close(hosts.ns[LAPTOP]);
	close(hosts.ns[OTHER]);
}

/* ---- two members ---- */

/* Sockets stay in the namespace in which they were made; only the laptop makes new ones. */
static void place(struct peers_config *cfg, int node) {
	at(node);
	cfg->silent_us = SILENT_US;
	cfg->listen = node == OTHER ? OTHER_HOST ":0" : NULL;
}

static void link_two(struct world *w) {
	set_up();
	world_init(w, 2, place);
	at(LAPTOP);
	snprintf(w->nodes[OTHER].ref.candidates[0].addr, sizeof w->nodes[OTHER].ref.candidates[0].addr, OTHER_HOST ":%u",
			 peers_port(w->nodes[OTHER].peers));
	world_allow(w, LAPTOP, 3);
	assert_true(world_until(w, world_all_linked, NULL));
}

static bool is_linked_anew(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[LAPTOP].ups[OTHER] == 2 && peers_linked(w->nodes[OTHER].peers, LAPTOP);
}

static void check_delivers(struct world *w) {
	w->nodes[LAPTOP].bulk[OTHER] = 0;
	w->nodes[OTHER].got_pings[LAPTOP] = 0;
	w->nodes[LAPTOP].pings[OTHER] = 1;
	for (int i = 0; i < 5000 && w->nodes[OTHER].got_pings[LAPTOP] == 0; i++)
		world_step(w);
	assert_int_equal(w->nodes[OTHER].got_pings[LAPTOP], 1);
}

/* The cable is pulled, and the system takes the address off the interface. */
static void a_lost_address_moves_the_links_at_once(void **state) {
	(void)state;
	struct world w;
	link_two(&w);
	int watch = os_address_watch_open();
	assert_true(watch >= 0 && !os_address_watch_take(watch));
	run("ip addr flush dev cable && ip link set cable down");
	assert_true(os_address_watch_take(watch));
	int64_t moved_us = w.now_us;
	peers_hurry(w.nodes[LAPTOP].peers, w.now_us);
	assert_true(world_until(&w, is_linked_anew, NULL));
	assert_in_range(w.now_us - moved_us, 0, 500 * MS);
	assert_non_null(strstr(w.nodes[LAPTOP].down_text[OTHER], "no longer has the address"));
	assert_int_equal(w.nodes[LAPTOP].fatals[OTHER] + w.nodes[OTHER].fatals[LAPTOP], 0);
	check_delivers(&w);
	close(watch);
	world_release(&w);
	tear_down();
}

/* The cable is dead, its address stays; packets to elsewhere take the other line. The link that was
 * made from the old address delivers nothing. */
static void a_dead_line_moves_the_links_when_they_are_silent(void **state) {
	(void)state;
	for (int idle = 0; idle < 2; idle++) {
		struct world w;
		link_two(&w);
		w.nodes[LAPTOP].bulk_bytes = BULK_BYTES;
		w.nodes[LAPTOP].bulk_body = calloc(1, BULK_BYTES);
		assert_non_null(w.nodes[LAPTOP].bulk_body);
		w.nodes[LAPTOP].bulk[OTHER] = idle ? 0 : MANY_FRAMES;
		for (int i = 0; i < 50; i++)
			world_step(&w);
		at(OTHER);
		run("ip link set cableB down");
		at(LAPTOP);
		run("ip route del " OTHER_HOST " via 10.1.0.2");
		int64_t dead_us = w.now_us;
		if (idle) /* another address came: the wireless line is up */
			peers_hurry(w.nodes[LAPTOP].peers, w.now_us);
		assert_true(world_until(&w, is_linked_anew, NULL));
		assert_in_range(w.now_us - dead_us, 0, SILENT_US + 500 * MS);
		check_delivers(&w);
		world_release(&w);
		tear_down();
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_address_moves_the_links_at_once),
		cmocka_unit_test(a_dead_line_moves_the_links_when_they_are_silent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
