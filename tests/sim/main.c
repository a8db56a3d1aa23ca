/* rivulet-sim: runs universes of the simulator, one per seed.
 *
 *   rivulet-sim --seeds 200 --first-seed 1             every seed must hold
 *   rivulet-sim --seeds 1 --first-seed 77 --verbose    one universe, told event by event
 *   rivulet-sim-bugs --bug NAME --seeds 400            the planted bug must be found */
#include "sim.h"

#include "base/clock.h"
#include "base/planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
	uint64_t seeds, first_seed;
	const char *bug;
	bool verbose;
};

static const char *const bugs[] = {"announce-before-persist", "double-count", "stale-attempt", "ignore-full-hash",
								   NULL};

#ifdef RV_PLANTED_BUGS
static const char *chosen_bug;

bool rv_planted_bug(const char *name) {
	return chosen_bug != NULL && strcmp(chosen_bug, name) == 0;
}
#endif

static void print_usage(FILE *out) {
	fprintf(out, "usage: rivulet-sim [--seeds N] [--first-seed S] [--verbose] [--bug NAME]\n"
				 "Runs one universe for each seed (200 from 1) until a check does not hold.\n"
				 "  --verbose   tells every event\n"
				 "  --bug NAME  plants a bug and demands that it is found (program rivulet-sim-bugs):");
	for (int i = 0; bugs[i] != NULL; i++)
		fprintf(out, " %s", bugs[i]);
	fprintf(out, "\n");
}

static int usage_fault(const char *wrong) {
	fprintf(stderr, "rivulet-sim: %s\n", wrong);
	print_usage(stderr);
	return 2;
}

static bool choose_bug(const char *name) {
	for (int i = 0; bugs[i] != NULL; i++)
		if (strcmp(bugs[i], name) == 0) {
#ifdef RV_PLANTED_BUGS
			chosen_bug = bugs[i];
			return true;
#endif
		}
	return false;
}

static bool parse_u64(const char *text, uint64_t *out) {
	char *end;
	*out = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static const char *parse(int argc, char **argv, struct arguments *a) {
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (strcmp(argv[i], "--verbose") == 0) {
			a->verbose = true;
			continue;
		}
		i++;
		if (strcmp(argv[i - 1], "--seeds") == 0) {
			if (!parse_u64(value, &a->seeds))
				return "--seeds wants a number";
		} else if (strcmp(argv[i - 1], "--first-seed") == 0) {
			if (!parse_u64(value, &a->first_seed))
				return "--first-seed wants a number";
		} else if (strcmp(argv[i - 1], "--bug") == 0) {
			a->bug = value;
			if (!choose_bug(value))
				return "no such bug in this build: rivulet-sim-bugs has them";
		} else {
			return "unknown option";
		}
	}
	return NULL;
}

static void add(struct sim_stats *sum, const struct sim_stats *one) {
	sum->events += one->events;
	sum->commits += one->commits;
	sum->later_attempts += one->later_attempts;
	sum->fetched_logs += one->fetched_logs;
	sum->fetched_bases += one->fetched_bases;
	sum->kept_progress += one->kept_progress;
	sum->named += one->named;
	sum->resynced += one->resynced;
	sum->virtual_us += one->virtual_us;
	sum->recovery_us = one->recovery_us > sum->recovery_us ? one->recovery_us : sum->recovery_us;
	sum->trace = (sum->trace ^ one->trace) * 0x100000001b3u;
	for (int i = 0; i < SIM_FAULTS; i++)
		sum->faults[i] += one->faults[i];
}

static void print_summary(const struct sim_stats *sum, uint64_t seeds, int64_t us) {
	double seconds = (double)us / RV_US_PER_S;
	uint64_t faults = 0;
	for (int i = 0; i < SIM_FAULTS; i++)
		faults += sum->faults[i];
	printf("%llu seeds in %.1f s: %.1f seeds/s, %.0f virtual hours, %llu events\n", (unsigned long long)seeds, seconds,
		   (double)seeds / seconds, (double)sum->virtual_us / 3600 / SIM_S, (unsigned long long)sum->events);
	printf(
		"%llu rounds committed, %llu rosters of a later attempt, %llu logs and %llu bases fetched, progress kept %llu "
		"times\n",
		(unsigned long long)sum->commits, (unsigned long long)sum->later_attempts,
		(unsigned long long)sum->fetched_logs, (unsigned long long)sum->fetched_bases,
		(unsigned long long)sum->kept_progress);
	printf("flipped bits: workers named %llu times, resynced %llu times\n", (unsigned long long)sum->named,
		   (unsigned long long)sum->resynced);
	printf("slowest end after healing: %.0f virtual s; trace %016llx\n", (double)sum->recovery_us / SIM_S,
		   (unsigned long long)sum->trace);
	printf("%llu faults:", (unsigned long long)faults);
	for (int i = 0; i < SIM_FAULTS; i++)
		printf(" %s %llu%s", sim_fault_names[i], (unsigned long long)sum->faults[i], i + 1 < SIM_FAULTS ? "," : "\n");
}

/* One universe; false when a check does not hold. */
static bool run_seed(const struct arguments *a, uint64_t seed, struct sim_stats *sum) {
	struct sim_options opt = sim_options_of(seed);
	struct sim_stats one;
	char why[1024];
	sim_options_print(&opt); /* first, whatever happens then */
	fflush(stdout);
	bool ok = sim_run(&opt, a->verbose, &one, why);
	add(sum, &one);
	if (!ok)
		printf("VIOLATION %s\n", why);
	return ok;
}

int main(int argc, char **argv) {
	struct arguments a = {.seeds = 200, .first_seed = 1};
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		print_usage(stdout);
		return 0;
	}
	const char *wrong = parse(argc, argv, &a);
	if (wrong != NULL)
		return usage_fault(wrong);
	printf("rivulet-sim --first-seed %llu --seeds %llu%s%s\n", (unsigned long long)a.first_seed,
		   (unsigned long long)a.seeds, a.bug != NULL ? " --bug " : "", a.bug != NULL ? a.bug : "");
	struct sim_stats sum = {0};
	int64_t start_us = rv_clock_monotonic_us();
	for (uint64_t i = 0; i < a.seeds; i++) {
		if (run_seed(&a, a.first_seed + i, &sum))
			continue;
		if (a.bug == NULL)
			return 1;
		printf("the planted bug '%s' was found after %llu seeds\n", a.bug, (unsigned long long)i + 1);
		return 0;
	}
	print_summary(&sum, a.seeds, rv_clock_monotonic_us() - start_us);
	if (a.bug != NULL)
		printf("the planted bug '%s' was NOT found\n", a.bug);
	return a.bug != NULL;
}
