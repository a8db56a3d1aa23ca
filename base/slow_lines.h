/* slow_lines.h: which members' lines hold up the exchange of a round, and how often such a member
 * takes part (slow-members = skip). One function for the coordinator and the lab.
 *
 * Each of n participants sends and receives 2 (n - 1) / n payloads; one that owns nothing sends and
 * receives one payload at least. An exchange has the *deadline* slow-deadline-ms, or what it takes
 * over lines as the median, at least 3/2 payloads. A member whose line needs T for one payload,
 * more than the deadline D, takes part in every k-th round, k = ceil(T / D), at most
 * SLOW_LINES_MOST: so its turns cost the others about D a round or less. With fragments, which
 * rounds exchange in turn, k is raised until its turns come to every fragment.
 *
 * While a slow line takes part in every round, the others show no more than two or three times its
 * rate, whatever they carry: the exchange gives them no more to do. That is above the deadline; in
 * the rounds that it leaves out they show the rest, and k grows. Pure arithmetic on integers. */
#ifndef RV_BASE_SLOW_LINES_H
#define RV_BASE_SLOW_LINES_H

#include <stdbool.h>
#include <stdint.h>

enum { SLOW_LINES_MOST = 8 };

struct slow_lines {
	uint64_t payload_bytes; /* of a round, encoded */
	int64_t deadline_us;    /* slow-deadline-ms; 0: what an exchange takes over median lines */
	uint32_t fragments;     /* round r exchanges fragment r mod this number; 0: 1 */
};

/* Returns the deadline of an exchange in microseconds, of members whose lines carry `rates` (n;
 * bytes/s of the slower direction; 0: not known, not counted); INT64_MAX: fewer than two are
 * known. */
int64_t slow_lines_deadline_us(const struct slow_lines *s, const uint64_t *rates, int n);
/* Returns true if a member that contributes to every `part`-th chunk only (0: to all) contributes
 * to `chunk` of what `round` exchanges: in `part` rounds to each, and members differ. */
static inline bool slow_contributes(uint8_t part, uint32_t member, uint64_t round, uint32_t chunk) {
	return part == 0 || (round + member + chunk) % part == 0;
}
/* Returns k for a line of `rate` bytes/s (0: not known): 1 takes part in every round. */
uint32_t slow_lines_every(const struct slow_lines *s, int64_t deadline_us, uint64_t rate);

#endif
