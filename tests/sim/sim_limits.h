/* sim_limits.h: sizes of a universe, the numbers of its hosts, units of time. */
#ifndef RV_TESTS_SIM_SIM_LIMITS_H
#define RV_TESTS_SIM_SIM_LIMITS_H

enum {
	SIM_MAX_WORKERS = 1024,
	SIM_ORDINARY = 32,                 /* workers of a universe that its seed makes, at most */
	SIM_COORDINATOR = SIM_MAX_WORKERS, /* its host */
	SIM_RELAY,                         /* the hosts of relays */
	SIM_MAX_RELAYS = 2,
	SIM_OUTSIDE = SIM_RELAY + SIM_MAX_RELAYS, /* whatever has an address and is none of these */
	SIM_HOSTS,
	SIM_NOBODY = -1,
	SIM_MAX_ROUNDS = 64,
	SIM_MAX_H = 8,                              /* steps of a round */
	SIM_MAX_STEPS = SIM_MAX_ROUNDS * SIM_MAX_H, /* in one contribution: progress may be kept all the time */
	SIM_MAX_CHUNKS = 128,
	SIM_MAX_FRAGMENTS = 4,
	SIM_MAX_FILES = 160,     /* on one disk */
	SIM_MAX_FAULTS = 1024,   /* in one plan */
	SIM_WALL_S = 1700000000, /* the wall clocks when it all began */
	SIM_MAX_ROUTERS = 2 * SIM_MAX_WORKERS + 1,
	SIM_MAX_EXPECTS = 16,
	SIM_MS = 1000,
	SIM_S = 1000000,
	SIM_STALL_US = 4 * SIM_S /* of the all-reduce: what is owed and withheld for so long */
};

#endif
