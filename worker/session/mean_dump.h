/* mean_dump.h: for tests of the mean: what this worker gave to an all-reduce and what it got, as files. Nothing without
 * RV_FAILPOINTS.
 *
 * With RIVULET_DUMP=DIR in the environment, DIR/contribution-ROUND-MEMBER-BOOT and DIR/reduced-ROUND-MEMBER-ATTEMPT are
 * written: a header of MEAN_DUMP_HEADER_BYTES, then the encoded vector. A contribution that changes while it is the
 * same process' to the same round is a bug, and asserted. */
#ifndef RV_WORKER_SESSION_MEAN_DUMP_H
#define RV_WORKER_SESSION_MEAN_DUMP_H

#include <stddef.h>
#include <stdint.h>

/* Little-endian: "RVMEAN01", parameters, round, member, boot or attempt, bytes of the vector. */
enum { MEAN_DUMP_HEADER_BYTES = 48 };
#define MEAN_DUMP_MAGIC "RVMEAN01"

#ifdef RV_FAILPOINTS
struct session;
void mean_dump_contribution(const struct session *s, uint64_t round);
void mean_dump_reduced(const struct session *s, uint64_t round, uint32_t attempt);
#define MEAN_DUMP_CONTRIBUTION(s, round)     mean_dump_contribution(s, round)
#define MEAN_DUMP_REDUCED(s, round, attempt) mean_dump_reduced(s, round, attempt)
#else
#define MEAN_DUMP_CONTRIBUTION(s, round)     ((void)0)
#define MEAN_DUMP_REDUCED(s, round, attempt) ((void)0)
#endif

#endif
