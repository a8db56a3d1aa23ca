/* rivulet-sim: runs universes of the simulator, one per seed; replays one; shrinks one that
 * fails. */
#include "sim_kept.h"
#include "sim_runner.h"

#include "base/assert.h"
#include "base/planted.h"
#include "base/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUGS                                                                                                           \
	"none|announce-before-persist|double-count|double-count-fragment|stale-attempt|former-process|ignore-full-hash|"   \
	"late-scatter|replay-a-vote|prune-early|piece-unverified|early-outer-step|count-given-steps|leave-behind|"         \
	"act-while-installing|end-when-started-again|end-before-all-is-stored|vote-unstored|"                              \
	"keep-what-was-given|adopt-what-was-not-given|lose-what-was-fetched|"                                              \
	"commit-what-was-given-up|discard-keeps-steps-ahead|leave-the-start|give-away-again|join-once|poll-not-renewed|"   \
	"pause-without-end|look-without-end|forget-a-lost-piece|pause-fetching-for-ever|"                                  \
	"keep-own-of-crossing|greet-any-number|both-are-clients|redial-without-backoff|"                                   \
	"forget-the-rest-of-a-frame|cap-uncharged|"                                                                        \
	"open-names-oneself|one-token-for-both|openings-only|look-at-what-is-past|refused-after-a-ring|no-guest|"          \
	"station-once|punch-from-another-port|trust-any-proof|dial-any-house|means-of-a-failed-attempt|"                   \
	"forget-means-at-a-restart|keep-means-of-moved-chunks|keep-void-sums|keep-former-sums|divide-by-the-rows|"         \
	"row-since-stays|weigh-rows-again|watch-as-an-owner|left-out-loses-steps|two-final-owners|keep-failed-rows|"       \
	"forms-of-a-former-roster|forms-by-the-new-place|part-of-another-member|forget-the-form|"                          \
	"forget-rows-at-a-restart|believe-a-vote|forget-what-is-given-back|read-again-after-a-restart|"                    \
	"grant-before-it-is-durable|audit-by-the-owner|convict-by-one|convict-by-two|strike-by-one|ban-by-two|believe-"    \
	"the-first|"                                                                                                       \
	"strike-nobody|wrong-refutes|a-look-clears|score-oneself|score-any-row|believe-most|ask-no-owner|beyond-the-"      \
	"quota|believe-a-suspect|"                                                                                         \
	"forget-what-is-read|believe-a-failed-write|name-who-was-right|believe-few|"                                       \
	"trust-roots|heed-no-names|announce-each-move|give-without-end|follow-any-run|go-for-free|need-the-banned"

struct sim_cli {
	int64_t seeds, first_seed, seed, jobs, workers, likes;
	char faults[4096], bug[32], format[8], universe[256], save[256];
	bool shrink, verbose, leases, liars, twenty, plots, audits, scores;
};

#define FIELD(f) offsetof(struct sim_cli, f)
#define CAP(f)   sizeof(((struct sim_cli *)0)->f)

static const struct rv_option options[] = {
	{"seeds", RV_OPT_INT, FIELD(seeds), 0, "200", 1, 1e12, NULL, "How many universes, one after the other.", "Many"},
	{"first-seed", RV_OPT_INT, FIELD(first_seed), 0, "1", 0, 1e15, NULL, "The seed of the first.", "Many"},
	{"jobs", RV_OPT_INT, FIELD(jobs), 0, "1", 0, 64, NULL,
	 "Processes that share the seeds; 0: one for each processor. The result is the same.", "Many"},
	{"workers", RV_OPT_INT, FIELD(workers), 0, "0", 0, SIM_MAX_WORKERS, NULL,
	 "Workers of each universe, 33 to 1024: a few rounds in rows, with faults; 0: up to 32, by its seed.", "Many"},
	{"leases", RV_OPT_BOOL, FIELD(leases), 0, "no", 0, 0, NULL,
	 "Members read what the coordinator leases to them: no position of the text twice.", "Many"},
	{"liars", RV_OPT_BOOL, FIELD(liars), 0, "no", 0, 0, NULL,
	 "Up to a third of the members lie, to the end: no honest one is named, and the run ends.", "Many"},
	{"twenty", RV_OPT_BOOL, FIELD(twenty), 0, "no", 0, 0, NULL, "With --liars: 20 members, four of which lie.", "Many"},
	{"plots", RV_OPT_BOOL, FIELD(plots), 0, "no", 0, 0, NULL,
	 "With --liars: a third of 7 to 20 members plan together; takes as long as twelve others.", "Many"},
	{"audits", RV_OPT_BOOL, FIELD(audits), 0, "no", 0, 0, NULL,
	 "Members audit averages; in some universes an owner or an auditor lies, or one gives auditors nothing.", "Many"},
	{"scores", RV_OPT_BOOL, FIELD(scores), 0, "no", 0, 0, NULL,
	 "Members audit each other's training; in some universes one does not train, keeps auditors away, or lies.",
	 "Many"},
	{"shrink", RV_OPT_BOOL, FIELD(shrink), 0, "yes", 0, 0, NULL,
	 "A universe that fails is run again with ever fewer faults.", "Many"},
	{"seed", RV_OPT_INT, FIELD(seed), 0, "-1", -1, 1e15, NULL, "Only this universe; -1: many.", "One"},
	{"faults", RV_OPT_STRING, FIELD(faults), CAP(faults), "all", 0, 0, NULL,
	 "With --seed: only these of its faults: numbers with commas between them, all, or none.", "One"},
	{"universe", RV_OPT_STRING, FIELD(universe), CAP(universe), "", 0, 0, NULL,
	 "Only the universe that this file keeps (tests/sim/kept/).", "One"},
	{"likes", RV_OPT_INT, FIELD(likes), 0, "0", 0, 1e6, NULL,
	 "With --seed or --universe: also as many like it, with the same faults and the next seeds.", "One"},
	{"save", RV_OPT_STRING, FIELD(save), CAP(save), "", 0, 0, NULL,
	 "With --seed or --universe: keeps it, with those faults, in this file, and does not run it.", "One"},
	{"verbose", RV_OPT_BOOL, FIELD(verbose), 0, "no", 0, 0, NULL, "With --seed or --universe: tells every event.",
	 "One"},
	{"bug", RV_OPT_ENUM, FIELD(bug), CAP(bug), "none", 0, 0, BUGS,
	 "Plants a bug in the protocol cores; it must be found (only in rivulet-sim-bugs).", "Bugs"},
	{"format", RV_OPT_ENUM, FIELD(format), CAP(format), "auto", 0, 0, "auto|text|json",
	 "auto: text on a terminal, JSON lines otherwise.", "Output"},
	{.name = NULL},
};

#ifdef RV_PLANTED_BUGS
static const char *chosen_bug;

bool rv_planted_bug(const char *name) {
	return chosen_bug != NULL && strcmp(chosen_bug, name) == 0;
}
#endif

static bool has_bug(const struct sim_cli *o) {
	return strcmp(o->bug, "none") != 0;
}

static struct sim_choice choice_of(const struct sim_cli *o, uint64_t seed) {
	return (struct sim_choice){.seed = seed,
							   .workers = (int)o->workers,
							   .leases = o->leases,
							   .liars = o->liars,
							   .twenty = o->twenty,
							   .plots = o->plots,
							   .audits = o->audits,
							   .scores = o->scores};
}

/* ---- the list of faults ---- */

static enum rv_err choose_faults(const char *list, struct sim_plan *plan, struct rv_errtext *et) {
	if (strcmp(list, "all") == 0)
		return RV_OK;
	memset(plan->chosen, 0, sizeof plan->chosen);
	if (strcmp(list, "none") == 0)
		return RV_OK;
	for (const char *at = list; *at != '\0';) {
		char *end;
		long number = strtol(at, &end, 10);
		if (end == at || (*end != ',' && *end != '\0'))
			return rv_fail(et, RV_E_INVALID,
						   "faults = %s: must be all, none, or numbers with commas between them, such as 3,17,21",
						   list);
		if (number < 0 || number >= plan->n)
			return rv_fail(et, RV_E_RANGE, "faults = %s: this universe has faults 0 to %d, no %ld", list, plan->n - 1,
						   number);
		plan->chosen[number] = true;
		at = *end == ',' ? end + 1 : end;
	}
	return RV_OK;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct sim_cli *o = opts;
	(void)args;
	if (o->seed < 0 && strcmp(o->faults, "all") != 0)
		return rv_fail(et, RV_E_INVALID, "faults = %s: of which universe? Add --seed S", o->faults);
	if (o->seed >= 0 && o->universe[0] != '\0')
		return rv_fail(et, RV_E_INVALID, "universe = %s: with --seed there would be two: leave one out", o->universe);
	bool many = o->seed < 0 && o->universe[0] == '\0';
	if (many && o->save[0] != '\0')
		return rv_fail(et, RV_E_INVALID, "save = %s: which universe? Add --seed S", o->save);
	if (many && o->verbose)
		return rv_fail(et, RV_E_INVALID, "verbose: of which universe? Add --seed S");
	if (o->workers > 0 && o->workers <= SIM_ORDINARY)
		return rv_fail(et, RV_E_RANGE, "workers = %d: must be 0 (by the seed), or %d to %d", (int)o->workers,
					   SIM_ORDINARY + 1, (int)SIM_MAX_WORKERS);
	if (o->liars + o->audits + o->scores > 1)
		return rv_fail(et, RV_E_INVALID, "liars, audits, scores: one of them, as their adversaries differ");
	if (o->twenty && !o->liars)
		return rv_fail(et, RV_E_INVALID, "twenty: add --liars, of which it says how many there are");
	if (o->twenty && o->plots)
		return rv_fail(et, RV_E_INVALID, "twenty: not with --plots, of which a third lie");
	if (o->plots && !o->liars)
		return rv_fail(et, RV_E_INVALID, "plots: add --liars, of which it says how they lie");
	if (o->liars && o->workers > 0)
		return rv_fail(et, RV_E_INVALID, "liars: not with --workers");
	if (o->workers > 0 && o->save[0] != '\0')
		return rv_fail(et, RV_E_INVALID, "save = %s: a file has no room for the faults of large universes", o->save);
#ifndef RV_PLANTED_BUGS
	if (has_bug(o))
		return rv_fail(et, RV_E_INVALID, "bug = %s: this build has no planted bugs; rivulet-sim-bugs has", o->bug);
#endif
	return RV_OK;
}

/* ---- what is told ---- */

static void replay_text(const struct sim_cli *o, uint64_t seed, const struct sim_plan *plan, char *out, size_t cap) {
	int n = snprintf(out, cap, "./dev sim --seed %llu", (unsigned long long)seed), named = 0;
	if (o->workers > 0)
		n += snprintf(out + n, cap - (size_t)n, " --workers %d", (int)o->workers);
	if (o->leases)
		n += snprintf(out + n, cap - (size_t)n, " --leases");
	if (o->liars)
		n += snprintf(out + n, cap - (size_t)n, " --liars");
	if (o->twenty)
		n += snprintf(out + n, cap - (size_t)n, " --twenty");
	if (o->plots)
		n += snprintf(out + n, cap - (size_t)n, " --plots");
	if (o->audits)
		n += snprintf(out + n, cap - (size_t)n, " --audits");
	if (o->scores)
		n += snprintf(out + n, cap - (size_t)n, " --scores");
	n += snprintf(out + n, cap - (size_t)n, " --faults ");
	for (int i = 0; i < plan->n && (size_t)n < cap; i++)
		if (plan->chosen[i])
			n += snprintf(out + n, cap - (size_t)n, "%s%d", named++ > 0 ? "," : "", i);
	if (named == 0 && (size_t)n < cap)
		n += snprintf(out + n, cap - (size_t)n, "none");
	if (has_bug(o) && (size_t)n < cap)
		n += snprintf(out + n, cap - (size_t)n, " --bug %s", o->bug);
	if ((size_t)n < cap)
		(void)snprintf(out + n, cap - (size_t)n, " --verbose");
}

static void tell_faults(struct rv_events *events, const struct sim_plan *plan) {
	for (int i = 0; i < plan->n; i++) {
		char text[512];
		if (!plan->chosen[i])
			continue;
		sim_fault_text(&plan->faults[i], text, sizeof text);
		rv_event(events, RV_INFO, "fault", RV_FIELDS(rv_field_int("number", i), rv_field_str("text", text)),
				 "  fault %d: %s", i, text);
	}
}

/* The universe, what does not hold in it, and the shortest list of faults that brings it about. */
static enum rv_err tell_violation(const struct sim_cli *o, const struct sim_options *opt, char why[1024],
								  struct sim_plan *plan, struct rv_events *events, struct rv_errtext *et) {
	uint64_t seed = opt->seed;
	char text[512], replay[4200];
	sim_options_text(opt, text, sizeof text);
	rv_event(events, RV_INFO, "universe", RV_FIELDS(rv_field_str("text", text)), "%s", text);
	rv_event(events, RV_ERROR, "violation", RV_FIELDS(rv_field_int("seed", (int64_t)seed), rv_field_str("why", why)),
			 "seed %llu: VIOLATION %s", (unsigned long long)seed, why);
	if (!o->shrink)
		return RV_OK;
	int tries = 0, left = 0, all = 0;
	for (int i = 0; i < plan->n; i++)
		all += plan->chosen[i];
	RV_TRY(shrink(opt, plan, events, why, &tries, et));
	for (int i = 0; i < plan->n; i++)
		left += plan->chosen[i];
	replay_text(o, seed, plan, replay, sizeof replay);
	rv_event(events, RV_ERROR, "shrunk",
			 RV_FIELDS(rv_field_int("seed", (int64_t)seed), rv_field_int("faults", left), rv_field_int("of", all),
					   rv_field_int("runs", tries), rv_field_str("why", why)),
			 "%d of its %d faults suffice (found in %d runs): %s", left, all, tries, why);
	tell_faults(events, plan);
	rv_event(events, RV_INFO, "replay", RV_FIELDS(rv_field_str("command", replay)), "replay: %s", replay);
	return RV_OK;
}

static void tell_injected(struct rv_events *events, const struct sim_stats *sum) {
	uint64_t faults = 0;
	struct rv_field by_kind[SIM_FAULT_KINDS + 1] = {0};
	char text[1024];
	int n = 0;
	for (int i = 0; i < SIM_FAULT_KINDS; i++) {
		faults += sum->faults[i];
		by_kind[i] = rv_field_int(sim_fault_names[i], (int64_t)sum->faults[i]);
		n += snprintf(text + n, sizeof text - (size_t)n, "%s %s %llu", i > 0 ? "," : "", sim_fault_names[i],
					  (unsigned long long)sum->faults[i]);
	}
	rv_event(events, RV_INFO, "injected", by_kind, "%llu faults:%s", (unsigned long long)faults, text);
}

static void tell_rounds(struct rv_events *events, const struct sim_stats *sum) {
	rv_event(
		events, RV_INFO, "rounds",
		RV_FIELDS(
			rv_field_int("committed", (int64_t)sum->commits),
			rv_field_int("later_attempts", (int64_t)sum->later_attempts),
			rv_field_int("commits_in_rows", (int64_t)sum->commits_in_rows),
			rv_field_int("rows_left_out", (int64_t)sum->rows_left_out),
			rv_field_int("fetched_logs", (int64_t)sum->fetched_logs),
			rv_field_int("fetched_snapshots", (int64_t)sum->fetched_snapshots),
			rv_field_int("older_snapshots", (int64_t)sum->older_snapshots),
			rv_field_int("own_files", (int64_t)sum->own_files),
			rv_field_int("kept_progress", (int64_t)sum->kept_progress),
			rv_field_int("overlapped", (int64_t)sum->overlapped), rv_field_int("given_away", (int64_t)sum->given_away),
			rv_field_int("residuals", (int64_t)sum->residuals),
			rv_field_int("mean_residuals", (int64_t)sum->mean_residuals),
			rv_field_int("clipped", (int64_t)sum->clipped), rv_field_int("left_out", (int64_t)sum->left_out),
			rv_field_int("sent_less", (int64_t)sum->sent_less), rv_field_int("calls", (int64_t)sum->calls),
			rv_field_int("openings", (int64_t)sum->openings), rv_field_int("met_relayed", (int64_t)sum->met_relayed),
			rv_field_int("met_punched", (int64_t)sum->met_punched),
			rv_field_int("relayed_bytes", (int64_t)sum->relayed_bytes),
			rv_field_int("rollbacks", (int64_t)sum->rollbacks), rv_field_int("convicted", (int64_t)sum->convicted),
			rv_field_int("row_audits", (int64_t)sum->row_audits), rv_field_int("row_lies", (int64_t)sum->row_lies),
			rv_field_int("struck", (int64_t)sum->struck), rv_field_int("cleared", (int64_t)sum->cleared),
			rv_field_int("repeats", (int64_t)sum->repeats), rv_field_int("standstills", (int64_t)sum->standstills),
			rv_field_int("torn_writes", (int64_t)sum->torn_writes), rv_field_int("named", (int64_t)sum->named),
			rv_field_int("resynced", (int64_t)sum->resynced), rv_field_int("faded", (int64_t)sum->faded)),
		"%llu rounds committed, %llu of them in rows, %llu rows left out, %llu rosters of a later attempt, %llu logs "
		"and %llu snapshots fetched, %llu found on the own disk, %llu writes torn, %llu rollbacks, progress kept %llu "
		"times, %llu outer steps behind an overlap, %llu of them late, %llu contributions with a residual, %llu "
		"chunks of contributions clipped, %llu left out, %llu contributions coarser or in part; flipped bits: %llu "
		"named, %llu "
		"resynced, %llu faded",
		(unsigned long long)sum->commits, (unsigned long long)sum->commits_in_rows,
		(unsigned long long)sum->rows_left_out, (unsigned long long)sum->later_attempts,
		(unsigned long long)sum->fetched_logs, (unsigned long long)sum->fetched_snapshots,
		(unsigned long long)sum->own_files, (unsigned long long)sum->torn_writes, (unsigned long long)sum->rollbacks,
		(unsigned long long)sum->kept_progress, (unsigned long long)sum->overlapped,
		(unsigned long long)sum->given_away, (unsigned long long)sum->residuals, (unsigned long long)sum->clipped,
		(unsigned long long)sum->left_out, (unsigned long long)sum->sent_less, (unsigned long long)sum->named,
		(unsigned long long)sum->resynced, (unsigned long long)sum->faded);
}

static void tell_stats(struct rv_events *events, const struct sim_stats *sum) {
	tell_injected(events, sum);
	tell_rounds(events, sum);
	if (sum->wrongly_suspected > 0)
		rv_event(events, RV_INFO, "wrongly_suspected",
				 RV_FIELDS(rv_field_int("times", (int64_t)sum->wrongly_suspected)),
				 "honest members were left out for an attempt %llu times, by the word of a liar",
				 (unsigned long long)sum->wrongly_suspected);
	if (sum->false_means > 0)
		rv_event(events, RV_INFO, "false_means", RV_FIELDS(rv_field_int("commits", (int64_t)sum->false_means)),
				 "%llu commits of what a liar gave to the only one that could vote",
				 (unsigned long long)sum->false_means);
	if (sum->stranded > 0)
		rv_event(events, RV_INFO, "stranded", RV_FIELDS(rv_field_int("universes", (int64_t)sum->stranded)),
				 "%llu runs could not end: a member was banned without which too few meet",
				 (unsigned long long)sum->stranded);
	if (sum->sequences > 0)
		rv_event(events, RV_INFO, "text",
				 RV_FIELDS(rv_field_int("sequences", (int64_t)sum->sequences),
						   rv_field_int("shards", (int64_t)sum->text_shards),
						   rv_field_int("ranges_of_members", (int64_t)sum->text_of_members),
						   rv_field_int("lies", (int64_t)sum->text_lies),
						   rv_field_int("waits", (int64_t)sum->text_waits)),
				 "%llu sequences read by commits; %llu shards of text fetched, %llu ranges from members, %llu lies "
				 "named, training waited %llu times",
				 (unsigned long long)sum->sequences, (unsigned long long)sum->text_shards,
				 (unsigned long long)sum->text_of_members, (unsigned long long)sum->text_lies,
				 (unsigned long long)sum->text_waits);
	rv_event(events, RV_INFO, "time",
			 RV_FIELDS(rv_field_double("virtual_hours", (double)sum->virtual_us / 3600 / SIM_S),
					   rv_field_int("events", (int64_t)sum->events),
					   rv_field_double("slowest_recovery_s", (double)sum->recovery_us / SIM_S),
					   rv_field_int("trace", (int64_t)(sum->trace >> 1))),
			 "%.1f virtual hours, %llu events; slowest end after healing: %.0f virtual s; trace %016llx",
			 (double)sum->virtual_us / 3600 / SIM_S, (unsigned long long)sum->events, (double)sum->recovery_us / SIM_S,
			 (unsigned long long)sum->trace);
}

static void tell_rate(struct rv_events *events, const struct runner_result *r) {
	const struct sim_stats *sum = &r->sum;
	double seconds = (double)r->took_us / SIM_S, cpu_s = (double)r->cpu_us / SIM_S, seeds = (double)sum->seeds;
	rv_event(events, RV_INFO, "done",
			 RV_FIELDS(rv_field_int("seeds", (int64_t)sum->seeds), rv_field_double("seconds", seconds),
					   rv_field_double("seeds_per_s", seeds / seconds), rv_field_double("cpu_s", cpu_s),
					   rv_field_double("mean_workers", (double)sum->workers / seeds)),
			 "%llu seeds in %.1f s: %.1f seeds/s (%.1f a second of one processor), %.1f workers each",
			 (unsigned long long)sum->seeds, seconds, seeds / seconds, seeds / cpu_s, (double)sum->workers / seeds);
}

/* ---- one universe, and many ---- */

/* The universe of --seed with the faults of --faults, or that of --universe. */
static enum rv_err find_one(const struct sim_cli *o, struct sim_options *opt, struct sim_plan *plan,
							struct rv_errtext *et) {
	if (o->universe[0] != '\0')
		return sim_kept_read(o->universe, opt, plan, et);
	const struct sim_choice choice = choice_of(o, (uint64_t)o->seed);
	sim_universe_of(&choice, opt, plan);
	return choose_faults(o->faults, plan, et);
}

static enum rv_err run_one(const struct sim_cli *o, struct rv_events *events, const struct sim_options *opt,
						   struct sim_plan *plan, struct rv_errtext *et) {
	struct sim_stats stats;
	char why[1024], text[512];
	sim_options_text(opt, text, sizeof text);
	rv_event(events, RV_INFO, "universe", RV_FIELDS(rv_field_str("text", text)), "%s", text);
	bool held = sim_run(opt, plan, o->verbose, &stats, why);
	tell_stats(events, &stats);
	if (!held && has_bug(o))
		rv_event(events, RV_INFO, "found", RV_FIELDS(rv_field_str("why", why)), "found: %s", why);
	else if (!held)
		RV_TRY(tell_violation(o, opt, why, plan, events, et));
	if (held != has_bug(o))
		return RV_OK;
	return held ? rv_fail(et, RV_E_NOTFOUND, "the planted bug %s was not found", o->bug)
				: rv_fail(et, RV_E_CORRUPT, "seed %llu: a check does not hold", (unsigned long long)opt->seed);
}

/* Runs it, and those like it, until one fails, or shows the planted bug: what a seed shows changes
 * with the protocol, what its faults make likely does not. */
static enum rv_err run_likes(const struct sim_cli *o, struct rv_events *events, const struct sim_options *opt,
							 const struct sim_plan *plan, struct rv_errtext *et) {
	const enum rv_err nothing = has_bug(o) ? RV_E_NOTFOUND : RV_OK;
	struct sim_plan *own = sim_alloc(sizeof *own);
	struct sim_options like = *opt;
	enum rv_err e = nothing;
	for (int64_t i = 0; i <= o->likes && e == nothing; i++, like.seed++) {
		*own = *plan;
		e = run_one(o, events, &like, own, et);
	}
	free(own);
	return e;
}

static enum rv_err run_or_save_one(const struct sim_cli *o, struct rv_events *events, struct rv_errtext *et) {
	struct sim_options opt;
	struct sim_plan *plan = sim_alloc(sizeof *plan);
	enum rv_err e = find_one(o, &opt, plan, et);
	if (e == RV_OK && o->save[0] != '\0')
		e = sim_kept_write(o->save, &opt, plan, "Why it is kept, and what was mended:", et);
	else if (e == RV_OK)
		e = run_likes(o, events, &opt, plan, et);
	free(plan);
	return e;
}

static enum rv_err tell_end(const struct sim_cli *o, struct runner_result *r, struct rv_events *events,
							struct rv_errtext *et) {
	if (!r->failed && has_bug(o))
		return rv_fail(et, RV_E_NOTFOUND, "the planted bug %s was not found in %lld seeds", o->bug,
					   (long long)o->seeds);
	if (!r->failed)
		return RV_OK;
	struct sim_options opt;
	struct sim_plan *plan = sim_alloc(sizeof *plan);
	const struct sim_choice choice = choice_of(o, r->seed);
	sim_universe_of(&choice, &opt, plan);
	enum rv_err e = tell_violation(o, &opt, r->why, plan, events, et);
	free(plan);
	RV_TRY(e);
	int64_t needed = (int64_t)r->seed - o->first_seed + 1;
	if (!has_bug(o))
		return rv_fail(et, RV_E_CORRUPT, "seed %llu: a check does not hold", (unsigned long long)r->seed);
	rv_event(events, RV_INFO, "found", RV_FIELDS(rv_field_str("bug", o->bug), rv_field_int("seeds", needed)),
			 "the planted bug %s was found after %lld seeds", o->bug, (long long)needed);
	return RV_OK;
}

static enum rv_err run_many(const struct sim_cli *o, struct rv_events *events, struct rv_errtext *et) {
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int processes = o->jobs > 0 ? (int)o->jobs : processors > 0 ? (int)processors : 1;
	struct runner_job job = {.first_seed = (uint64_t)o->first_seed,
							 .seeds = (uint64_t)o->seeds,
							 .workers = (int)o->workers,
							 .leases = o->leases,
							 .liars = o->liars,
							 .twenty = o->twenty,
							 .plots = o->plots,
							 .audits = o->audits,
							 .scores = o->scores,
							 .processes = processes,
							 .bug = has_bug(o) ? o->bug : NULL};
	struct runner_result *r = sim_alloc(sizeof *r);
	enum rv_err e = runner_run(&job, events, r, et);
	if (e == RV_OK && r->sum.seeds > 0) {
		tell_stats(events, &r->sum);
		tell_rate(events, r);
	}
	if (e == RV_OK)
		e = tell_end(o, r, events, et);
	free(r);
	return e;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct sim_cli *o = opts;
	(void)args;
#ifdef RV_PLANTED_BUGS
	chosen_bug = has_bug(o) ? o->bug : NULL;
#endif
	bool json = strcmp(o->format, "json") == 0 || (strcmp(o->format, "auto") == 0 && !isatty(STDOUT_FILENO));
	const struct rv_events_config cfg = {.out = stdout, .json = json, .level = json ? RV_DEBUG : RV_INFO};
	struct rv_events *events;
	RV_TRY(rv_events_new(&cfg, &events, et));
	bool one = o->seed >= 0 || o->universe[0] != '\0';
	enum rv_err e = one ? run_or_save_one(o, events, et) : run_many(o, events, et);
	rv_events_free(events);
	return e;
}

static const struct rv_command commands[] = {
	{.synopsis = "",
	 .help = "Runs one universe for each seed until a check does not hold.",
	 .details =
		 "A universe is a coordinator and 1 to 32 workers, made of the real protocol cores, under virtual time: lines\n"
		 "with delay, jitter and rates, disks that tear, machines that die, freeze, lose power or jump in time. Its\n"
		 "seed decides everything, so it replays exactly. For a while faults are injected and safety is checked at\n"
		 "every step; then everything heals, and the run must end. A universe that fails is shrunk to the few of its\n"
		 "faults that matter, and the command that replays it is printed.\n",
	 .options = options,
	 .opts_bytes = sizeof(struct sim_cli),
	 .check = check,
	 .run = run},
	{.run = NULL},
};

static const struct rv_program program = {
	.name = "rivulet-sim",
	.summary = "The deterministic simulator of rounds, faults and recovery.",
	.commands = commands,
	.examples = "  rivulet-sim --seeds 10000 --jobs 0             ten thousand universes on all processors\n"
				"  rivulet-sim --workers 1000 --seeds 1           one of a thousand workers\n"
				"  rivulet-sim --seed 77 --verbose                one, told event by event\n"
				"  rivulet-sim --seed 77 --faults 3,17,21         the same with three of its faults\n"
				"  rivulet-sim --seed 77 --faults 3,17,21 --save tests/sim/kept/why-it-broke\n"
				"                                                 kept as a test\n"
				"  rivulet-sim-bugs --bug double-count --seeds 2000   a planted bug must be found\n",
};

int main(int argc, char **argv) {
	return rv_program_main(&program, argc, argv);
}
