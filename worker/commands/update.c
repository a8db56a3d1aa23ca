/* update.c: `rivulet-worker update --check`: says whether the run's coordinator, or a release feed,
 * has a newer version. Nothing is installed. */
#include "base/version.h"
#include "worker/commands/commands.h"
#include "worker/options/options.h"
#include "worker/update/coordinator_version.h"
#include "worker/update/release.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { DIR_BYTES = sizeof(((struct worker_options *)0)->dir), FEED_BYTES = 800, KEY_BYTES = 200 };

/* RV_RELEASE_FEED and RV_RELEASE_KEY are named when a release is built (worker/CMakeLists.txt). */
struct update_options {
	char dir[DIR_BYTES];
	char feed[FEED_BYTES];
	char key[KEY_BYTES];
};

static const struct rv_option table[] = {
	{"dir", RV_OPT_STRING, offsetof(struct update_options, dir), DIR_BYTES, "rivulet-worker", 1, 0, NULL,
	 "Directory of the worker, whose coordinator is asked.", "Update"},
	{"feed", RV_OPT_STRING, offsetof(struct update_options, feed), FEED_BYTES, RV_RELEASE_FEED, 0, 0, NULL,
	 "Address (https://HOST/FOLDER) or folder of the newest release: its files, SHA256SUMS and SHA256SUMS.minisig.",
	 "Update"},
	{"key", RV_OPT_STRING, offsetof(struct update_options, key), KEY_BYTES, RV_RELEASE_KEY, 0, 0, NULL,
	 "The release key that must have signed it, as minisign writes public keys (RW...).", "Update"},
	{.name = NULL},
};

static enum rv_err check_options(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct update_options *o = opts;
	(void)args;
	if (o->feed[0] && !o->key[0])
		return rv_fail(et, RV_E_INVALID, "--feed: needs --key, the release key that its files are signed with");
	if (!o->feed[0] && !has_joined(o->dir))
		return rv_fail(et, RV_E_INVALID,
					   "there is nobody to ask: this program was built without a release feed (--feed URL --key KEY "
					   "name one), and %s has not joined a run (--dir DIR names another)",
					   o->dir);
	return RV_OK;
}

/* Returns "newer", ...: how another version is to this program's. */
static const char *relation(const struct release_version *other) {
	struct release_version own;
	if (!release_version_parse(rv_version(), &own))
		return "not comparable";
	const int order = release_version_compare(other, &own);
	return order > 0 ? "newer" : order < 0 ? "older" : "the same version";
}

static void print_coordinator(const char *dir) {
	char software[SOFTWARE_BYTES];
	struct rv_errtext et = {0};
	struct release_version v;
	if (coordinator_version(dir, software, &et) != RV_OK)
		(void)printf("coordinator   not asked: %s\n", et.text);
	else
		(void)printf("coordinator   %s: %s\n", software,
					 release_version_parse(software, &v) ? relation(&v) : "not comparable");
}

static void print_files(const struct release *r, const char *feed) {
	struct release_file f;
	const size_t n = strlen(feed);
	for (const char *at = r->sums; release_next_file(&at, "rivulet-worker", &f);)
		(void)printf("    %s%s%s\n        SHA-256 %s\n", feed, n > 0 && feed[n - 1] == '/' ? "" : "/", f.name,
					 f.sha256);
}

static enum rv_err print_release(const struct update_options *o, struct rv_errtext *et) {
	struct rv_minisign_public key;
	struct release r;
	char id[2 * RV_MINISIGN_ID_BYTES + 1];
	enum rv_err e = rv_minisign_read_public(o->key, &key, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "--key");
	e = release_fetch(o->feed, &key, &r, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "the release feed %s", o->feed);
	rv_minisign_print_id(&key, id);
	(void)printf("release feed  %s: %s, signed by the key %s\n", r.comment, relation(&r.version), id);
	if (strcmp(relation(&r.version), "newer") == 0) {
		print_files(&r, o->feed);
		(void)printf("Nothing was installed: fetch the file that you want, check it, and install it yourself.\n");
	}
	release_free(&r);
	return RV_OK;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct update_options *o = opts;
	(void)args;
	(void)signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to sockets that may be gone */
	(void)printf("this program  rivulet-worker %s\n", rv_version());
	if (has_joined(o->dir))
		print_coordinator(o->dir);
	return o->feed[0] ? print_release(o, et) : RV_OK;
}

const struct rv_command worker_update_command = {
	.name = "update",
	.synopsis = "--check",
	.args_min = 0,
	.args_max = 0,
	.help = "Prints whether the run's coordinator, or a release feed, has a newer version; installs nothing.",
	.details = "A feed is a folder with the files of the newest release, SHA256SUMS, and SHA256SUMS.minisig, whose\n"
			   "trusted comment is `rivulet VERSION`. What the release key has not signed is not believed. A\n"
			   "coordinator that is of a newer version works with this one as long as both speak a common protocol.\n",
	.options = table,
	.opts_bytes = sizeof(struct update_options),
	.check = check_options,
	.runs_on_check = true,
	.run = run,
};
