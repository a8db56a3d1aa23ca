/* slow_lines.h: which members' lines hold up the exchange of a round, and what becomes of them
 * (slow-members). One set of functions for the coordinator and the lab.
 *
 * Each of n participants sends and receives 2 (n - 1) / n payloads; one that owns nothing sends and
 * receives one payload at least. The *deadline* of an exchange is slow-deadline-ms; if that is 0,
 * the time that it takes over lines of the median rate, at least that of 3/2 payloads.
 *
 * skip     A member whose line needs T for one payload, more than the deadline D, takes part in
 *          every k-th round, k = ceil(T / D), at most SLOW_LINES_MOST: so its turns cost the others
 *          about D a round or less. With fragments, which rounds exchange in turn, k is raised
 *          until its turns come to every fragment.
 * coarser  A member whose uplink needs T for a contribution, more than D, sends it by the first of
 *          the coarser codecs that makes D, or by the last.
 * part     It sends every k-th chunk (slow_contributes), k as for skip, and at most the number of
 *          chunks: so each contribution has one.
 *
 * Each member receives a whole mean. So for the latter two D is at least what that takes over its
 * downlink: to send less would make nothing faster.
 *
 * A meter shows what a line carried (the second best of five rounds), not what it could. While a
 * member sends all, no mean arrives before its own contribution has, so its downlink seems as slow
 * as its uplink; while it sends little, its uplink may show little. So in two of 16 rounds, and in
 * the first SLOW_LINES_FIRST, a member that would send all for its downlink's sake sends less all
 * the same; and in two of 16 a member that sends less sends more: by the codec before, or with half
 * the k.
 *
 * While a slow line takes part in every round, the others show no more than two or three times its
 * rate, whatever they carry: the exchange gives them no more to do. That is above the deadline; in
 * the rounds that it leaves out, or sends less in, they show the rest, and k grows. Pure arithmetic
 * on integers. */
#ifndef RV_BASE_SLOW_LINES_H
#define RV_BASE_SLOW_LINES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SLOW_LINES_MOST = 8,
	SLOW_LINES_STEPS = 8,
	SLOW_LINES_FIRST = 8,
	SLOW_LINES_LOOKS = 3 /* exchanges after which a line must look slow before anything follows */
};

struct slow_lines {
	uint64_t payload_bytes; /* of a round, encoded: a contribution or a mean, whichever is longer */
	int64_t deadline_us;    /* slow-deadline-ms; 0: what an exchange takes over median lines */
	uint32_t fragments;     /* round r exchanges fragment r mod this number; 0: 1 */
	uint32_t chunks;        /* part: of the round, so that each contribution has one; 0: many */
	/* coarser, part. */
	uint64_t sent_bytes, mean_bytes; /* of a contribution by the run's codec, and of a mean */
	int n_steps;
	uint64_t step_bytes[SLOW_LINES_STEPS]; /* of a contribution by each coarser codec: they descend */
};

/* A member's line, bytes/s in each direction; 0: not known. */
struct slow_line {
	uint64_t up, down;
};

/* Returns the deadline of an exchange in microseconds, of members whose lines carry `rates` (n;
 * bytes/s of the slower direction; 0: not known, not counted); INT64_MAX: fewer than two are
 * known. */
int64_t slow_lines_deadline_us(const struct slow_lines *s, const uint64_t *rates, int n);
/* Returns the microseconds that `bytes` take at `rate` bytes/s, rounded up; 0: rate 0. */
int64_t slow_lines_takes_us(uint64_t bytes, uint64_t rate);
/* Returns k of `skip` for a line of `rate` bytes/s (0: not known); 1: part of every round. */
uint32_t slow_lines_every(const struct slow_lines *s, int64_t deadline_us, uint64_t rate);
/* Returns the step of `coarser` by which the member sends in `round`; -1: the run's codec. */
int slow_lines_step(const struct slow_lines *s, int64_t deadline_us, struct slow_line line, uint32_t member,
					uint64_t round);
/* Returns k of `part` by which the member sends in `round`; 0: all chunks. */
uint8_t slow_lines_part(const struct slow_lines *s, int64_t deadline_us, struct slow_line line, uint32_t member,
						uint64_t round);

/* Returns true if a member that contributes to every `part`-th chunk only (0: to all) contributes
 * to `chunk` of what `round` exchanges: in `part` rounds to each, and members differ. */
static inline bool slow_contributes(uint8_t part, uint32_t member, uint64_t round, uint32_t chunk) {
	return part == 0 || (round + member + chunk) % part == 0;
}

#endif
