/* sim_hosts.c: the hosts of a universe, and sets of them. */
#include "sim.h"

int sim_number(int host) {
	enum { OTHERS = SIM_HOSTS - SIM_COORDINATOR };
	if (host >= SIM_COORDINATOR)
		return SIM_ORDINARY + (host - SIM_COORDINATOR);
	return host < SIM_ORDINARY ? host : host + OTHERS;
}

int sim_host_of_number(int number) {
	enum { OTHERS = SIM_HOSTS - SIM_COORDINATOR };
	if (number < SIM_ORDINARY)
		return number;
	return number < SIM_ORDINARY + OTHERS ? SIM_COORDINATOR + (number - SIM_ORDINARY) : number - OTHERS;
}

int sim_next_host(const struct sim *s, int host) {
	return host == s->opt.n_workers - 1 ? SIM_COORDINATOR : host + 1;
}

static int group_size(int n_workers) {
	return (n_workers + SIM_ORDINARY - 1) / SIM_ORDINARY;
}

int sim_groups(int n_workers) {
	return (n_workers + group_size(n_workers) - 1) / group_size(n_workers);
}

bool sim_in_set(int n_workers, uint64_t set, int host) {
	const int bit = host < SIM_COORDINATOR ? host / group_size(n_workers) : sim_number(host);
	return set >> bit & 1;
}
