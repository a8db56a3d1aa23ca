/* sim_forms.c: how participants with slow lines send their contributions (base/slow_lines.h), and
 * the oracle, which judges it by the records and by what members report alone.
 *
 * - Only the run's policy makes anybody send less. With `coarser` it is by a codec that is coarser
 *   than the run's; with `part` every k-th chunk, and so one at least; one participant at least
 *   sends all, and in a roster of several rows all do.
 * - It is a member that said its uplink needs longer for its contribution than the record's
 *   deadline; or it was to send so in the attempt before.
 * - What is sent is what the codec makes of the contribution as it was encoded; the rest is the
 *   sender's residual. */
#include "sim.h"

#include "base/assert.h"
#include "outer/codec_kernels.h"
#include "outer/slow_codecs.h"

#include <stdlib.h>
#include <string.h>

size_t forms_most_bytes(const struct global_config *g) {
	size_t most = 0;
	for (int i = 0; codec_registry[i] != NULL; i++)
		for (uint32_t fragment = 0; fragment < fragments_count(&g->fragments); fragment++) {
			const struct chunking c = global_round_chunks(g, fragment);
			const size_t bytes = chunking_total_bytes(&c, codec_registry[i]);
			most = bytes > most ? bytes : most;
		}
	return most;
}

struct contribution_form forms_of(const struct document *d, uint32_t member) {
	const int at = document_find(d, member);
	RV_ASSERT(at >= 0);
	return (struct contribution_form){member, d->members[at].codec, d->members[at].part};
}

bool forms_has(const struct contribution_form *f, uint64_t round, uint32_t chunk) {
	return f->part == 0 || (chunk + round + f->member) % f->part == 0;
}

bool forms_agree(const struct sim_participant *p, const struct member_ref *m) {
	return p->form.codec == m->codec && p->form.part == m->part;
}

/* ---- the law ---- */

void forms_report(struct sim *s, int host, const struct report *rep) {
	uint64_t *up = s->oracle.uplinks[host];
	if (up[0] == rep->up_bytes_per_s)
		return;
	up[1] = up[0];
	up[0] = rep->up_bytes_per_s;
}

/* Returns true if a contribution took the line longer than the deadline, by its last reports. */
static bool is_slow(const struct sim *s, int host, const struct core_record *rec) {
	const uint64_t bytes =
		rec->n_chunks * (uint64_t)s->opt.codec->encoded_bytes(s->opt.codec, s->global_config.chunks.chunk_elems);
	for (int i = 0; i < 2; i++) {
		const uint64_t up = s->oracle.uplinks[host][i];
		if (up > 0 && 1e3 * (double)bytes / (double)up > (double)rec->slow_deadline_ms - 1)
			return true;
	}
	return false;
}

/* Returns true if the participant was to send so in the attempt before. */
static bool was_so(const struct sim *s, const struct core_record *rec, int i) {
	const struct sim_roster *r = rec->attempt > 1 ? roster_of(s, rec->round, rec->attempt - 1) : NULL;
	for (int k = 0; r != NULL && k < r->n; k++)
		if (r->of[k].member == rec->members[i] && r->of[k].form.codec == rec->codecs[i] &&
			r->of[k].form.part == rec->parts[i])
			return true;
	return false;
}

static const char *complaint(const struct sim *s, const struct core_record *rec, int i) {
	const bool less = rec->codecs[i] != 0 || rec->parts[i] != 0;
	const int host = oracle_host_of(s, rec->members[i]);
	if (rec->codecs[i] != 0 && s->opt.slow_members != SLOW_COARSER)
		return "by another codec, which is not the run's policy";
	if (rec->parts[i] != 0 && s->opt.slow_members != SLOW_PART)
		return "a part, which is not the run's policy";
	if (rec->codecs[i] != 0 && global_sent_as(&s->global_config, rec->codecs[i]) == NULL)
		return "by a codec that is not coarser than the run's";
	if (rec->parts[i] == 1 || rec->parts[i] > NET_MAX_PART || rec->parts[i] > rec->n_chunks)
		return "a part that there is not";
	if (less && !was_so(s, rec, i) && (host == SIM_NOBODY || !is_slow(s, host, rec)))
		return "less than all, though its line makes the deadline";
	return NULL;
}

void forms_record(struct sim *s, const struct core_record *rec) {
	int whole = 0;
	for (int i = 0; i < rec->n_members && !s->failed; i++) {
		const char *what = complaint(s, rec, i);
		whole += rec->parts[i] == 0;
		if (what != NULL)
			sim_fail(s, "round %llu attempt %u: member %u is to send %s", (unsigned long long)rec->round, rec->attempt,
					 rec->members[i], what);
	}
	if (rec->n_members > 0 && (whole == 0 || (rec->n_members > s->opt.row_size && whole < rec->n_members)))
		sim_fail(s, "round %llu attempt %u: too few participants send all chunks", (unsigned long long)rec->round,
				 rec->attempt);
}

/* ---- what is sent ---- */

/* Sum of squares of an encoded chunk: as the codec has it, else by 16 lanes in turn, which are
 * folded. */
static double squares(const struct codec *codec, const uint8_t *encoded, const float *x, size_t n) {
	double lanes[CODEC_DOT_LANES] = {0};
	if (codec->sum_squares != NULL)
		return codec->sum_squares(codec, encoded, n);
	for (size_t i = 0; i < n; i++)
		lanes[i % CODEC_DOT_LANES] += (double)x[i] * (double)x[i];
	for (int half = CODEC_DOT_LANES / 2; half > 0; half /= 2)
		for (int l = 0; l < half; l++)
			lanes[l] += lanes[l + half];
	return lanes[0];
}

double forms_sent(const struct sim *s, const uint8_t *encoded, const struct contribution_form *f, uint64_t round,
				  uint32_t c, float *x) {
	const struct chunking chunks = global_round_chunks(&s->global_config, round);
	const size_t n = chunking_len(&chunks, c);
	const struct codec *codec = s->opt.codec, *as = global_sent_as(&s->global_config, f->codec);
	const uint8_t *chunk = encoded + chunking_offset_bytes(&chunks, codec, c);
	RV_ASSERT(as != NULL && codec->decode(codec, chunk, n, x, NULL) == RV_OK);
	if (as == codec)
		return squares(codec, chunk, x, n);
	uint8_t *again = sim_alloc(as->encoded_bytes(as, n));
	RV_ASSERT(as->encode(as, x, n, again, NULL) == RV_OK && as->decode(as, again, n, x, NULL) == RV_OK);
	const double sum = squares(as, again, x, n);
	free(again);
	return sum;
}

void forms_leave(struct sim *s, const uint8_t *encoded, const struct contribution_form *f, uint64_t round,
				 float *left) {
	const struct chunking chunks = global_round_chunks(&s->global_config, round);
	const struct contribution_form whole = {f->member, 0, 0};
	float *sent = sim_alloc(2 * s->opt.chunk_elems * sizeof *sent), *all = sent + s->opt.chunk_elems;
	for (uint32_t c = 0; c < chunks.n_chunks; c++) {
		float *at = left + global_round_chunk_at(&s->global_config, round, c);
		const size_t n = chunking_len(&chunks, c);
		const bool has = forms_has(f, round, c);
		if (has && f->codec == 0)
			continue;
		(void)forms_sent(s, encoded, &whole, round, c, all);
		memset(sent, 0, n * sizeof *sent);
		if (has)
			(void)forms_sent(s, encoded, f, round, c, sent);
		for (size_t i = 0; i < n; i++)
			at[i] = at[i] + (all[i] - sent[i]);
	}
	free(sent);
}
