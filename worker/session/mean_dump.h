/* mean_dump.h: writes, for tests of the mean, a worker's contribution to an all-reduce and the
 * result as files. Nothing without RV_FAILPOINTS.
 *
 * RIVULET_DUMP=DIR in the environment makes it write DIR/contribution-ROUND-MEMBER-BOOT and
 * DIR/reduced-ROUND-MEMBER-ATTEMPT: a header of MEAN_DUMP_HEADER_BYTES, then the encoded vector. It
 * asserts that a process' contribution to a round does not change. */
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
