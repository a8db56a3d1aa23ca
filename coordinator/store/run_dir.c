/* run_dir.c: see run_dir.h. */
#include "coordinator/store/run_dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum rv_err run_dir_of(const char *dir, struct run_dir *out, struct rv_errtext *et) {
	if (strlen(dir) >= sizeof out->dir)
		return rv_fail(et, RV_E_RANGE, "%s: the path is longer than %zu bytes", dir, sizeof out->dir - 1);
	(void)snprintf(out->dir, sizeof out->dir, "%s", dir);
	(void)snprintf(out->key, sizeof out->key, "%s/run.key", dir);
	(void)snprintf(out->root_key, sizeof out->root_key, "%s/root.key", dir);
	(void)snprintf(out->store, sizeof out->store, "%s/store.db", dir);
	(void)snprintf(out->listen, sizeof out->listen, "%s/listen", dir);
	(void)snprintf(out->address, sizeof out->address, "%s/address", dir);
	(void)snprintf(out->relay_ports, sizeof out->relay_ports, "%s/relay-ports", dir);
	(void)snprintf(out->web, sizeof out->web, "%s/web.pem", dir);
	(void)snprintf(out->rounds, sizeof out->rounds, "%s/rounds.jsonl", dir);
	(void)snprintf(out->text, sizeof out->text, "%s/text", dir);
	return RV_OK;
}

static enum rv_err check_there(const struct run_dir *d, const char *path, int mode, const char *what,
							   struct rv_errtext *et) {
	if (access(path, mode) == 0)
		return RV_OK;
	if (errno == EACCES)
		return rv_fail(et, RV_E_AUTH, "%s: no permission: only the user who made the run may use it", path);
	if (errno == ENOENT || errno == ENOTDIR)
		return rv_fail(et, RV_E_NOTFOUND,
					   "%s is not a run: it has no %s; `rivulet-coordinator new-run --dir %s` makes one", d->dir, what,
					   d->dir);
	return rv_fail_errno(et, errno, "%s", path);
}

enum rv_err run_dir_find(const char *dir, struct run_dir *out, struct rv_errtext *et) {
	struct stat st;
	RV_TRY(run_dir_of(dir, out, et));
	if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
		return rv_fail(et, RV_E_NOTFOUND, "%s is not a directory", dir);
	RV_TRY(check_there(out, out->dir, R_OK | W_OK | X_OK, "directory", et));
	RV_TRY(check_there(out, out->store, R_OK | W_OK, "store.db", et));
	return check_there(out, out->key, R_OK, "run.key", et);
}
