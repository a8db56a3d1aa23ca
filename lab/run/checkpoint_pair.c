/* checkpoint_pair.c: see checkpoint_pair.h. */
#include "lab/run/checkpoint_pair.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

struct paths {
	char newest[PATH_MAX], before[PATH_MAX], damaged[PATH_MAX];
};

static struct paths paths_in(const char *dir) {
	struct paths p;
	snprintf(p.newest, sizeof p.newest, "%s/" LAB_CHECKPOINT_FILE, dir);
	snprintf(p.before, sizeof p.before, "%s/" LAB_CHECKPOINT_BEFORE_FILE, dir);
	snprintf(p.damaged, sizeof p.damaged, "%s/" LAB_CHECKPOINT_DAMAGED_FILE, dir);
	return p;
}

enum rv_err checkpoint_pair_save(struct lab_run *r, const char *dir, struct rv_errtext *et) {
	const struct paths p = paths_in(dir);
	(void)unlink(p.before);
	/* The newest stays where it is, under a second name, until the next takes its place. There may
	 * be none yet. A disk that refuses the second name costs the one before, not the newest. */
	const int kept = link(p.newest, p.before);
	(void)kept;
	return lab_run_save(r, p.newest, et);
}

/* Returns true if the file was read and is damaged. One that cannot be read now (RV_E_IO,
 * RV_E_NOMEM), or belongs to another run or version, may be whole. */
static bool is_damage(enum rv_err e) {
	return e == RV_E_CORRUPT || e == RV_E_RANGE;
}

/* Replaces the damaged newest by the one before it, and keeps it under another name; at any moment
 * there is a newest. */
static enum rv_err replace_by_before(const struct paths *p, struct rv_errtext *et) {
	(void)unlink(p->damaged);
	if (link(p->newest, p->damaged) != 0)
		return rv_fail_errno(et, errno, "%s: damaged, and cannot be kept as %s", p->newest, p->damaged);
	if (rename(p->before, p->newest) != 0)
		return rv_fail_errno(et, errno, "%s: cannot take the place of %s", p->before, p->newest);
	return RV_OK;
}

/* Loads the one before it, since the newest is damaged: adds to *damage, which describes that, what
 * was done. */
static enum rv_err load_before(struct lab_run *r, const struct paths *p, struct rv_errtext *damage,
							   struct rv_errtext *et) {
	const struct rv_errtext why = *damage;
	struct rv_errtext also = {0};
	if (access(p->before, F_OK) != 0)
		return rv_fail(et, RV_E_CORRUPT, "%s; no earlier one is kept: remove it, and the same command trains anew",
					   why.text);
	enum rv_err e = lab_run_load(r, p->before, &also);
	if (e != RV_OK)
		return rv_fail(et, e, "%.200s; the one before it: %.200s%s", why.text, also.text,
					   is_damage(e) ? "; remove both, and the same command trains anew" : "");
	RV_TRY(replace_by_before(p, et));
	(void)rv_fail(damage, RV_E_CORRUPT,
				  "%.300s; the one before it has taken its place, of round %" PRIu64
				  "; the damaged one is now " LAB_CHECKPOINT_DAMAGED_FILE,
				  why.text, r->rounds_done);
	return RV_OK;
}

enum rv_err checkpoint_pair_load(struct lab_run *r, const char *dir, bool *resumed, struct rv_errtext *damage,
								 struct rv_errtext *et) {
	const struct paths p = paths_in(dir);
	*damage = (struct rv_errtext){0};
	*resumed = access(p.newest, F_OK) == 0;
	if (!*resumed && errno == ENOENT)
		return RV_OK;
	if (!*resumed)
		return rv_fail_errno(et, errno, "%s: cannot check whether it exists", p.newest);
	enum rv_err e = lab_run_load(r, p.newest, damage);
	if (is_damage(e))
		return load_before(r, &p, damage, et);
	return e == RV_OK ? RV_OK : rv_fail(et, e, "%s", damage->text);
}
