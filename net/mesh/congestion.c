/* congestion.c: see congestion.h. */
#include "net/mesh/congestion.h"

enum { RTT_SHARE = 8, TRIALS_DOUBLE = 7 };

static int64_t larger(int64_t a, int64_t b) {
	return a > b ? a : b;
}

static bool was_quiet(const struct congestion *c, const struct pipe_info *info) {
	return larger(c->queue_us, c->queue_before_us) < CONGESTION_QUEUE_US + info->least_rtt_us / RTT_SHARE;
}

static double lost(const struct pipe_info *info) {
	return info->resent > info->doubled ? (double)(info->resent - info->doubled) : 0;
}

/* That bytes of an earlier period came twice may be known only now. */
static void count(struct congestion_bytes *b, const struct congestion *c, const struct pipe_info *info) {
	const double resent = b->resent + lost(info) - c->lost;
	b->sent += (double)(info->sent - c->sent);
	b->resent = resent > 0 ? resent : 0;
	if (b->sent <= CONGESTION_MEMORY_BYTES)
		return;
	b->sent /= 2;
	b->resent /= 2;
}

static void begin(struct congestion *c, int64_t now_us, const struct pipe_info *info) {
	c->since_us = now_us;
	c->sent = info->sent;
	c->resent = info->resent;
	c->lost = lost(info);
	c->queue_before_us = c->queue_us;
	c->queue_us = 0;
}

static bool suffers(const struct congestion_bytes *b) {
	return b->resent >= CONGESTION_LEAST_LOST_BYTES && b->resent * CONGESTION_LOSSY_SHARE > b->sent;
}

static bool is_lossy(const struct congestion *c, const struct congestion_line *line) {
	if (line->any_lossy && suffers(&c->all))
		return true;
	return suffers(&c->quiet) || (c->quiet.resent > 0 && suffers(&line->quiet));
}

static void set_lossy(struct congestion *c, const struct pipe_info *info) {
	c->lossy = true;
	c->lossy_since = info->sent;
	c->trial_bytes = c->trial_bytes == 0 ? CONGESTION_TRIAL_BYTES : 2 * c->trial_bytes;
	if (c->trial_bytes > CONGESTION_TRIAL_BYTES << TRIALS_DOUBLE)
		c->trial_bytes = CONGESTION_TRIAL_BYTES << TRIALS_DOUBLE;
}

static void try_again(struct congestion *c) {
	c->lossy = false;
	c->quiet = c->all = (struct congestion_bytes){0};
}

static void end_period(struct congestion *c, const struct pipe_info *info, const struct congestion_line *line) {
	if (c->lossy && info->sent - c->lossy_since > c->trial_bytes)
		try_again(c);
	if (c->lossy)
		return;
	if (was_quiet(c, info))
		count(&c->quiet, c, info);
	count(&c->all, c, info);
	if (is_lossy(c, line))
		set_lossy(c, info);
}

void congestion_join(struct congestion_line *line, const struct congestion *c) {
	line->quiet.sent += c->quiet.sent;
	line->quiet.resent += c->quiet.resent;
	line->any_lossy = line->any_lossy || c->lossy;
}

bool congestion_measure(struct congestion *c, int64_t now_us, const struct pipe_info *info,
						const struct congestion_line *line) {
	if (c->since_us == 0 || info->sent < c->sent || info->resent < c->resent) {
		begin(c, now_us, info);
		return c->lossy;
	}
	c->queue_us = larger(c->queue_us, info->rtt_us - info->least_rtt_us);
	if (now_us - c->since_us < larger(CONGESTION_PERIOD_US, 2 * info->least_rtt_us))
		return c->lossy;
	end_period(c, info, line);
	begin(c, now_us, info);
	return c->lossy;
}
