/* progress.h: the text of a progress line, apart from when and where it is drawn. Internal to
 * event.h. */
#ifndef RV_BASE_PROGRESS_H
#define RV_BASE_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

/* The observed task and its rate. Zero-initialise. */
struct rv_progress_state {
	char label[64];
	int64_t first_us, last_us; /* monotonic */
	uint64_t first_done, last_done;
	double rate_per_s; /* smoothed over about ten seconds; 0: not known yet */
};

/* Takes a new observation. A new label, or less done than before, starts afresh. */
void rv_progress_observe(struct rv_progress_state *s, int64_t now_us, const char *label, uint64_t done);

/* Writes "label [#####.....] 41% 1234/3000 unit  56.7 unit/s  ETA 0:31  note  note" in at most
 * `cap` - 1 columns (cap >= 1). total 0: no bar, no ETA; "ETA unknown" without a rate. Fields that
 * do not fit are left out whole, the least important first. Order of importance: label, percent,
 * ETA, the first two fields of the note (separated by two spaces), rate, bar, count, the rest of
 * the note. Returns the length. */
size_t rv_progress_render(const struct rv_progress_state *s, uint64_t total, const char *unit, const char *note,
						  char *out, size_t cap);

#endif
