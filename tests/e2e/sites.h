/* sites.h: hosts in network namespaces of their own, joined by shaped_net (bench/shaped_net.c), for
 * tests of hosts that vanish without a word. Needs root, /dev/net/tun and iproute2: where these are
 * missing a test is skipped. */
#ifndef TESTS_E2E_SITES_H
#define TESTS_E2E_SITES_H

#include "e2e.h"

#include <stdbool.h>
#include <stdio.h>

enum { SITES_MAX = E2E_MAX_WORKERS + 1 };

struct sites {
	struct e2e_site at[SITES_MAX]; /* for e2e_open_at */
	char names[SITES_MAX][32];
	int n; /* namespaces that were made */
	pid_t relay;
	FILE *commands, *answers;
};

/* n sites with unlimited lines, delay_ms one way between any two. False: they cannot be made here;
 * `why` says it in one line. */
bool sites_open(struct sites *s, int n, int delay_ms, char why[256]);
/* Whether sites can be made here; where not, the reason is printed. */
bool sites_possible(void);
/* Ends the relay, removes the namespaces. After e2e_close. */
void sites_close(struct sites *s);
/* Nothing leaves or reaches the site any more, and nobody is told; until it is healed. */
void sites_cut(struct sites *s, int at);
void sites_heal(struct sites *s, int at);
/* The site's address goes, and another one comes; its connections are not told. */
void sites_move(struct sites *s, int at);
/* Nothing goes from this site to the other, or comes back; both reach the others. */
void sites_part(struct sites *s, int at, int other);
/* Of its line, up and down; 0: unlimited. */
void sites_rate(struct sites *s, int at, long bits_per_s);

#endif
