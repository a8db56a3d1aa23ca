/* lab_leases.h: which sequences of a published text (data-hash) each replica of a run reads, leased
 * as a coordinator leases them to members 0, 1, ...: so the lab reads what they read. A run without
 * data-hash has none. */
#ifndef RV_LAB_LAB_LEASES_H
#define RV_LAB_LAB_LEASES_H

#include "base/err.h"
#include "base/leases.h"

#include <stdbool.h>

struct lab_run;
enum { LAB_LEASES_REPLICAS = 64, LAB_LEASES_FREE = 4 * LAB_LEASES_REPLICAS };

struct lab_leases {
	uint64_t round; /* sequences of a replica's round; 0: there are no leases */
	struct leases all;
	struct lease_holder holders[LAB_LEASES_REPLICAS];
	struct lease_range free[LAB_LEASES_FREE];
};

/* Grants the first leases to a new run's replicas. */
void lab_leases_init(struct lab_run *r);
/* Gives replica i what it holds, before it trains. */
void lab_leases_read(struct lab_run *r, int i);
/* Consumes what the contributions of those that take part contain, and grants them more: their
 * round is committed. */
void lab_leases_commit(struct lab_run *r, const bool *takes_part);
/* The same for all replicas of a method without participants, with what they have read. */
void lab_leases_commit_read(struct lab_run *r);

#endif
