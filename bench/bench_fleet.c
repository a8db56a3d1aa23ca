/* bench_fleet.c: up to a few hundred fake members of a run in one process, over real mutual TLS
 * (bench/fleet.sh starts these processes and a coordinator).
 *
 *     bench_fleet FIRST TRAIN MORE_TRAIN AVERAGE MORE_AVERAGE FROM_ROUND TO_ROUND < LINKS
 *
 * One invite link a line; times in ms. FIRST: number of the first of them among all processes.
 * Prints a JSON line when all members of this process have joined, and runs until SIGTERM; then
 * another: the traffic of rounds FROM_ROUND to before TO_ROUND, all members of this process
 * together. */
#include "base/clock.h"
#include "bench/fleet_member.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MEMBERS = 512, SEED = 20261123 };

static void die(const char *what) {
	(void)fprintf(stderr, "bench_fleet: %s\n", what);
	exit(1);
}

static uint64_t number(const char *text) {
	char *end;
	uint64_t n = strtoull(text, &end, 10);
	if (end == text || *end != '\0')
		die("an argument is no number");
	return n;
}

static int read_links(struct invite *invites) {
	char line[INVITE_MAX_BYTES + 2];
	struct rv_errtext et;
	int n = 0;
	while (fgets(line, sizeof line, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (n == MAX_MEMBERS)
			die("too many links");
		if (invite_parse(line, &invites[n++], &et) != RV_OK)
			die(et.text);
	}
	return n;
}

static void on_signal(evutil_socket_t fd, short what, void *base) {
	(void)fd, (void)what;
	(void)event_base_loopbreak(base);
}

static void print_traffic(struct fleet_member **members, int n) {
	struct fleet_traffic sum = {0};
	for (int i = 0; i < n; i++) {
		struct fleet_traffic t = fleet_member_traffic(members[i]);
		sum.tx_bytes += t.tx_bytes;
		sum.rx_bytes += t.rx_bytes;
		sum.requests += t.requests;
		sum.documents += t.documents;
		sum.document_bytes += t.document_bytes;
		sum.faults += t.faults;
	}
	(void)printf("{\"members\":%d,\"tx_bytes\":%" PRIu64 ",\"rx_bytes\":%" PRIu64 ",\"requests\":%" PRIu64
				 ",\"documents\":%" PRIu64 ",\"document_bytes\":%" PRIu64 ",\"faults\":%" PRIu64 "}\n",
				 n, sum.tx_bytes, sum.rx_bytes, sum.requests, sum.documents, sum.document_bytes, sum.faults);
}

static int n_members, n_joined;

static void on_joined(void) {
	if (++n_joined < n_members)
		return;
	(void)printf("{\"joined\":%d}\n", n_joined);
	(void)fflush(stdout);
}

static struct fleet_plan plan_of(char **argv) {
	enum { TRAIN = 2, TRAIN_MORE, AVERAGE, AVERAGE_MORE, FROM, TO };
	return (struct fleet_plan){.train = {.least_us = (int64_t)number(argv[TRAIN]) * RV_US_PER_MS,
										 .more_us = (int64_t)number(argv[TRAIN_MORE]) * RV_US_PER_MS},
							   .average = {.least_us = (int64_t)number(argv[AVERAGE]) * RV_US_PER_MS,
										   .more_us = (int64_t)number(argv[AVERAGE_MORE]) * RV_US_PER_MS},
							   .first_round = number(argv[FROM]),
							   .end_round = number(argv[TO]),
							   .seed = SEED,
							   .on_joined = on_joined};
}

int main(int argc, char **argv) {
	static struct invite invites[MAX_MEMBERS];
	static struct fleet_member *members[MAX_MEMBERS];
	enum { ARGUMENTS = 8 };
	if (argc != ARGUMENTS)
		die("FIRST TRAIN MORE_TRAIN AVERAGE MORE_AVERAGE FROM_ROUND TO_ROUND < LINKS");
	(void)signal(SIGPIPE, SIG_IGN);
	const struct fleet_plan plan = plan_of(argv);
	uint32_t first = (uint32_t)number(argv[1]);
	struct rv_errtext et;
	struct event_base *base = event_base_new();
	struct event *end = base != NULL ? evsignal_new(base, SIGTERM, on_signal, base) : NULL;
	if (end == NULL || event_add(end, NULL) != 0)
		die("no memory");
	const int n = n_members = read_links(invites);
	for (int i = 0; i < n; i++)
		if (fleet_member_new(base, &invites[i], &plan, first + (uint32_t)i, &members[i], &et) != RV_OK)
			die(et.text);
	(void)event_base_dispatch(base);
	print_traffic(members, n);
	for (int i = 0; i < n; i++)
		fleet_member_free(members[i]);
	event_free(end);
	event_base_free(base);
	return 0;
}
