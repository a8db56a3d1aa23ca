/* sim_oracle_mesh.c: what the mesh may do: a link is with whom it says, and honest peers break no rule. */
#include "sim.h"

/* The streams state who is at the other end; the bytes that are read now came from there. */
static void check_whose(struct sim *s, int host, int peer, const char *what) {
	int from = s->workers[host].reads_from;
	if (peer != from)
		sim_fail(s, "w%d takes %s of w%d for one of w%d", host, what, from, peer);
}

void oracle_frame(struct sim *s, int host, int peer) {
	check_whose(s, host, peer, "a frame");
}

void oracle_link_up(struct sim *s, int host, int peer) {
	check_whose(s, host, peer, "a link");
}

static bool is_a_rule(enum rv_err why) {
	return why == RV_E_PROTOCOL || why == RV_E_INVALID || why == RV_E_CORRUPT || why == RV_E_AUTH;
}

void oracle_link_down(struct sim *s, int host, int peer, enum rv_err why, const char *text) {
	if (is_a_rule(why))
		sim_fail(s, "w%d says that w%d broke a rule: %s", host, peer, text);
}

void oracle_trouble(struct sim *s, int host, enum rv_err why, const char *text) {
	if (is_a_rule(why))
		sim_fail(s, "w%d refuses an honest peer: %s", host, text);
}
