/* rotate_key.c: `rotate-key`: the root key certifies a new serving key, and the earlier ones are
 * refused from then on. */
#include "base/file.h"
#include "coordinator/commands/commands.h"
#include "coordinator/store/run_dir.h"
#include "coordinator/store/run_keys.h"
#include "coordinator/store/sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct rotate_options {
	char dir[RUN_DIR_BYTES];
	char root_key[RUN_PATH_BYTES];
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct rotate_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL,
	 "Directory of the run.", "Keys"},
	{"root-key", RV_OPT_STRING, offsetof(struct rotate_options, root_key), RUN_PATH_BYTES, "", 0, 0, NULL,
	 "The run's root.key, wherever it is kept; empty: the one in the run's directory.", "Keys"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static enum rv_err read_run_id(const struct run_dir *d, uint8_t run_id[NET_RUN_ID_BYTES], struct rv_errtext *et) {
	char config[NET_MAX_CONFIG_BYTES];
	struct store *store = NULL;
	RV_TRY(sqlite_store_open(d->store, &store, et));
	enum rv_err e = store->ops->run(store, run_id, config, et);
	store_close(store);
	return e;
}

static enum rv_err check_root(const struct identity *root, const struct run_keys *now, const char *path,
							  struct rv_errtext *et) {
	if (memcmp(root->key, now->root, NET_KEY_BYTES) != 0)
		return rv_fail(et, RV_E_INVALID, "%s is not the root key of this run", path);
	if (now->cert.serial == UINT32_MAX)
		return rv_fail(et, RV_E_RANGE, "this run has had %" PRIu32 " serving keys: that is the last", now->cert.serial);
	return RV_OK;
}

static enum rv_err rotate(const struct run_dir *d, const struct identity *root, const char *root_path,
						  struct rv_errtext *et) {
	struct run_keys now = {.cert = {.serial = 0}}, next = now;
	uint8_t run_id[NET_RUN_ID_BYTES];
	RV_TRY(read_run_id(d, run_id, et));
	RV_TRY(run_keys_load(d->key, &now, et));
	enum rv_err e = check_root(root, &now, root_path, et);
	if (e == RV_OK)
		e = run_keys_make(root, run_id, now.cert.serial + 1, &next, et);
	if (e == RV_OK)
		e = run_keys_store(d->key, &next, et);
	if (e == RV_OK)
		(void)printf(
			"%s: serving key %" PRIu32 ". Start `serve` again: workers take it over when they connect, and "
			"refuse the earlier ones.\n"
			"Earlier backups hold an earlier key: make a new one. A relay on another server needs no change.\n",
			d->key, next.cert.serial);
	run_keys_release(&now);
	run_keys_release(&next);
	return e;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct rotate_options *o = opts;
	struct run_dir d;
	struct identity root = {0};
	int lock = -1;
	RV_TRY(run_dir_find(o->dir, &d, et));
	const char *path = o->root_key[0] != '\0' ? o->root_key : d.root_key;
	enum rv_err e = identity_load(path, &root, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "--root-key: the run's root key is needed");
	e = rv_dir_lock(d.dir, &lock, et);
	if (e != RV_OK)
		e = rv_fail_context(et, e, "stop the coordinator first");
	else
		e = rotate(&d, &root, path, et);
	identity_release(&root);
	rv_dir_unlock(lock);
	return e;
}

const struct rv_command cmd_rotate_key = {
	.name = "rotate-key",
	.synopsis = "",
	.help = "Makes a new key to serve the run with, because the present one may be known to others.",
	.details = "The root key, which `new-run` made, signs it. Links, members and their state stay as they are.",
	.options = options,
	.opts_bytes = sizeof(struct rotate_options),
	.run = run,
};
