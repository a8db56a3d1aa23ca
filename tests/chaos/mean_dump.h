/* mean_dump.h: the files that rivulet-worker-failpoint writes for mean_check.h, of contributions to
 * all-reduces and of their results.
 *
 * RIVULET_DUMP=DIR in the environment makes it write DIR/contribution-ROUND-MEMBER-BOOT and
 * DIR/reduced-ROUND-MEMBER-ATTEMPT: a header of MEAN_DUMP_HEADER_BYTES, then the encoded vector. It
 * asserts that a process' contribution to a round does not change. */
#ifndef TESTS_CHAOS_MEAN_DUMP_H
#define TESTS_CHAOS_MEAN_DUMP_H

/* Little-endian: "RVMEAN01", parameters, round, member, boot or attempt, bytes of the vector. */
enum { MEAN_DUMP_HEADER_BYTES = 48 };
#define MEAN_DUMP_MAGIC "RVMEAN01"

#endif
