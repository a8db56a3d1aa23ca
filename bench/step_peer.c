/* step_peer.c: see step_peer.h. */
#include "bench/step_peer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_STEPS = 1024 };

static void run_child(char *const argv[], const struct step_env *env, int in, int out) {
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	for (; env && env->name; env++)
		env->value ? setenv(env->name, env->value, 1) : unsetenv(env->name);
	execvp(argv[0], argv);
	_exit(127);
}

/* Reads the line "ready" and what follows in it. */
static bool read_about(struct step_peer *p) {
	static const char ready[] = "ready";
	char line[sizeof ready + sizeof p->about];
	if (!fgets(line, sizeof line, p->from) || strncmp(line, ready, sizeof ready - 1) != 0)
		return false;
	const char *about = line + sizeof ready - 1;
	about += strspn(about, " ");
	snprintf(p->about, sizeof p->about, "%.*s", (int)strcspn(about, "\n"), about);
	return true;
}

bool step_peer_start(struct step_peer *p, char *const argv[], const struct step_env *env) {
	*p = (struct step_peer){0};
	int down[2], up[2];
	if (pipe2(down, O_CLOEXEC) != 0)
		return false;
	if (pipe2(up, O_CLOEXEC) != 0) {
		close(down[0]);
		close(down[1]);
		return false;
	}
	p->pid = fork();
	if (p->pid == 0)
		run_child(argv, env, down[0], up[1]);
	close(down[0]);
	close(up[1]);
	p->to = fdopen(down[1], "w");
	p->from = fdopen(up[0], "r");
	if (p->pid > 0 && p->to && p->from && read_about(p))
		return true;
	step_peer_stop(p);
	return false;
}

bool step_peer_round(struct step_peer *p, int n) {
	double wall, cpu;
	if (p->n_rounds == STEP_PEER_MAX_ROUNDS || fprintf(p->to, "%d\n", n) < 0 || fflush(p->to) != 0 ||
		fscanf(p->from, "%lf %lf %lf", &wall, &cpu, &p->rss_mib) != 3)
		return false;
	p->ms[STEP_WALL][p->n_rounds] = wall;
	p->ms[STEP_CPU][p->n_rounds++] = cpu;
	return true;
}

void step_peer_stop(struct step_peer *p) {
	if (p->to)
		fclose(p->to);
	if (p->from)
		fclose(p->from);
	p->to = p->from = NULL;
	if (p->pid > 0)
		waitpid(p->pid, NULL, 0);
	p->pid = 0;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double step_median(double *x, int n) {
	qsort(x, (size_t)n, sizeof *x, ascending);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

double step_peer_ms(const struct step_peer *p, enum step_clock clock) {
	double ms[STEP_PEER_MAX_ROUNDS];
	memcpy(ms, p->ms[clock], sizeof ms);
	return step_median(ms, p->n_rounds);
}

double step_peer_ratio(const struct step_peer *p, const struct step_peer *peer, enum step_clock clock) {
	double ratios[STEP_PEER_MAX_ROUNDS];
	for (int i = 0; i < p->n_rounds; i++)
		ratios[i] = peer->ms[clock][i] / p->ms[clock][i];
	return step_median(ratios, p->n_rounds);
}

static double now_ms(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

int step_serve(FILE *out, void (*step)(void *ctx), void *ctx) {
	fprintf(out, "ready\n");
	fflush(out);
	int n;
	while (scanf("%d", &n) == 1 && n >= 1 && n <= MAX_STEPS) {
		double wall[MAX_STEPS], cpu[MAX_STEPS];
		for (int i = 0; i < n; i++) {
			const double began = now_ms(CLOCK_MONOTONIC), cpu_began = now_ms(CLOCK_PROCESS_CPUTIME_ID);
			step(ctx);
			cpu[i] = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_began;
			wall[i] = now_ms(CLOCK_MONOTONIC) - began;
		}
		struct rusage usage;
		getrusage(RUSAGE_SELF, &usage);
		fprintf(out, "%.4f %.4f %.1f\n", step_median(wall, n), step_median(cpu, n), (double)usage.ru_maxrss / 1024);
		fflush(out);
	}
	return 0;
}
