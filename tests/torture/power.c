/* power.c: see power.h. What is durable is remembered beside the files themselves: contents as of
 * each file's last fsync, names as of the directory's. */
#include "tests/torture/power.h"

#include "base/rng.h"
#include "tests/common/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES = 256, NAMES = 128, SECTOR = 512, FILE_MAX = 1 << 24, CUT = 77, ENDED = 78, NO_NODE = -1 };

struct node { /* a file, whatever its name */
	int fd;   /* keeps it, and its number, when it has no name any more */
	ino_t number;
	uint8_t *durable; /* NULL: never synced */
	size_t n;
};

struct name {
	char text[NAME_MAX + 1];
	int node;
};

struct names {
	struct name at[NAMES];
	int n;
};

/* Of the process of a trial. */
static struct {
	bool on;
	const struct power_trial *trial;
	ino_t dir;
	long changes;
	struct rv_rng rng;
	struct node nodes[NODES];
	int n_nodes;
	struct names durable;
} power;

/* ---- files ---- */

static uint8_t *contents_of(int fd, size_t *n) {
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_in_range(st.st_size, 0, FILE_MAX);
	*n = (size_t)st.st_size;
	uint8_t *bytes = malloc(*n + 1);
	assert_non_null(bytes);
	assert_int_equal(pread(fd, bytes, *n, 0), *n);
	return bytes;
}

static int node_of(const char *path) {
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	for (int i = 0; i < power.n_nodes; i++)
		if (power.nodes[i].number == st.st_ino)
			return i;
	assert_in_range(power.n_nodes, 0, NODES - 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	power.nodes[power.n_nodes] = (struct node){.fd = fd, .number = st.st_ino};
	return power.n_nodes++;
}

static void make_durable(struct node *f) {
	free(f->durable);
	f->durable = contents_of(f->fd, &f->n);
}

static void list(struct names *out) {
	DIR *d = opendir(power.trial->dir);
	assert_non_null(d);
	out->n = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char path[PATH_MAX];
		if (e->d_name[0] == '.' || e->d_type == DT_DIR)
			continue;
		assert_in_range(out->n, 0, NAMES - 1);
		(void)snprintf(path, sizeof path, "%s/%s", power.trial->dir, e->d_name);
		(void)snprintf(out->at[out->n].text, sizeof out->at[0].text, "%s", e->d_name);
		out->at[out->n++].node = node_of(path);
	}
	closedir(d);
}

static int node_named(const struct names *names, const char *text) {
	for (int i = 0; i < names->n; i++)
		if (strcmp(names->at[i].text, text) == 0)
			return names->at[i].node;
	return NO_NODE;
}

/* ---- what is left ---- */

enum fate { NOTHING, EVERYTHING, SOMETHING, FATES };

/* Whether a change that was not synced has come to the disk. */
static bool arrived(enum fate fate) {
	return fate == EVERYTHING || (fate == SOMETHING && rv_rng_below(&power.rng, 2) == 0);
}

/* Of never synced contents there may be nothing; room that was taken and not written is zeros. */
static uint8_t *remains_of(const struct node *f, enum fate fate, size_t *n) {
	size_t now_n, was_n = f->durable != NULL ? f->n : 0;
	uint8_t *now = contents_of(f->fd, &now_n);
	*n = arrived(fate) ? now_n : was_n;
	uint8_t *out = calloc(1, *n + 1);
	assert_non_null(out);
	for (size_t at = 0; at < *n; at += SECTOR) {
		bool new = arrived(fate);
		size_t end = new ? now_n : was_n, until = at + SECTOR < *n ? at + SECTOR : *n;
		until = until < end ? until : end;
		if (at < until)
			memcpy(out + at, (new ? now : f->durable) + at, until - at);
	}
	free(now);
	return out;
}

struct remains {
	char text[NAME_MAX + 1];
	uint8_t *bytes;
	size_t n;
};

static void put_remains(const struct remains *r) {
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/%s", power.trial->dir, r->text);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, r->bytes, r->n), r->n);
	(void)close(fd);
}

static void remove_all(const struct names *names) {
	for (int i = 0; i < names->n; i++) {
		char path[PATH_MAX];
		(void)snprintf(path, sizeof path, "%s/%s", power.trial->dir, names->at[i].text);
		assert_int_equal(unlink(path), 0);
	}
}

static void cut(void) {
	static struct names now, all;
	static struct remains left[2 * NAMES];
	enum fate fate = (enum fate)(power.trial->seed % FATES);
	int n = 0;
	power.on = false;
	list(&now);
	all = now;
	for (int i = 0; i < power.durable.n; i++)
		if (node_named(&now, power.durable.at[i].text) == NO_NODE) {
			assert_in_range(all.n, 0, NAMES - 1);
			all.at[all.n++] = power.durable.at[i];
		}
	for (int i = 0; i < all.n; i++) {
		const char *text = all.at[i].text;
		int is = node_named(&now, text), was = node_named(&power.durable, text), node = arrived(fate) ? is : was;
		if (node == NO_NODE)
			continue;
		memcpy(left[n].text, text, sizeof left[n].text);
		left[n].bytes = remains_of(&power.nodes[node], fate, &left[n].n);
		n++;
	}
	remove_all(&now);
	for (int i = 0; i < n; i++)
		put_remains(&left[i]);
	_exit(CUT);
}

/* ---- the process of a trial ---- */

void power_changes(void) {
	if (power.on && ++power.changes == power.trial->cut_at)
		cut();
}

void power_synced(int fd) {
	char path[64];
	struct stat st;
	if (!power.on)
		return;
	assert_int_equal(fstat(fd, &st), 0);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (S_ISREG(st.st_mode))
		make_durable(&power.nodes[node_of(path)]);
	else if (st.st_ino == power.dir)
		list(&power.durable);
}

static _Noreturn void be_a_trial(const struct power_trial *t) {
	struct stat st;
	(void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* an assert that fails ends this process, not the test in it */
	power.trial = t;
	power.rng = rv_rng_of(t->seed, (uint64_t)t->cut_at);
	assert_int_equal(stat(t->dir, &st), 0);
	power.dir = st.st_ino;
	list(&power.durable);
	for (int i = 0; i < power.n_nodes; i++)
		make_durable(&power.nodes[i]);
	power.on = true;
	t->run(t->ctx, t->acknowledged);
	power_changes(); /* and once when all has been acknowledged */
	_exit(ENDED);
}

bool power_cut_in(const struct power_trial *t) {
	int status;
	(void)fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be_a_trial(t);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || (WEXITSTATUS(status) != CUT && WEXITSTATUS(status) != ENDED))
		fail_msg("the process of the trial with a power cut at change %ld, seed %llu, ended with %d", t->cut_at,
				 (unsigned long long)t->seed, status);
	return WEXITSTATUS(status) == CUT;
}

void *power_shared(unsigned long bytes) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	return p;
}
