/* new_run.c: `new-run`: a directory with a fresh run: its number, its key, its configuration, its
 * text, an empty store. */
#include "coordinator/commands/commands.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/fp32_cost.h"
#include "base/hex.h"
#include "base/run_audits.h"
#include "base/run_config_idle.h"
#include "base/run_silence.h"
#include "coordinator/commands/run_text.h"
#include "coordinator/service/service.h"
#include "coordinator/store/run_dir.h"
#include "coordinator/store/run_keys.h"
#include "coordinator/store/sqlite.h"
#include "net/identity.h"
#include "outer/global.h"
#include "train/text/published/least_room.h"
#include "train/text/published/mirror_hosts.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DIR_MODE = 0700 };

struct new_run_options {
	struct run_config run; /* first: the offsets of run_config_options hold */
	char dir[RUN_DIR_BYTES];
	char root_key[RUN_PATH_BYTES];
	struct run_text_options text;
	struct run_about about;
};

static const struct rv_option own_options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct new_run_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL,
	 "Directory to make the run in.", "Coordinator"},
	{"root-key", RV_OPT_STRING, offsetof(struct new_run_options, root_key), RUN_PATH_BYTES, "", 0, 0, NULL,
	 "Where the run's root key is kept, best on a medium that is not in this machine later on; made if there is no "
	 "such file. Empty: root.key in the run's directory.",
	 "Coordinator"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

/* Notes the cost of fp32 for the operator, who chooses the dtype. */
static void note_fp32(const struct run_config *run) {
	char cost[FP32_COST_TEXT_BYTES];
	if (run->dtype != RUN_DTYPE_FP32)
		return;
	fp32_cost_text(run, cost);
	(void)fprintf(stderr, "note: dtype = fp32: %s; dtype = auto, the default, is bf16 there\n", cost);
}

/* Notes what has no effect; of a text that will be published the hash is not known yet. */
static void note_idle(const struct run_config *run, bool publishes) {
	struct run_config noted = *run;
	struct rv_errtext idle;
	if (publishes && !noted.data_hash[0])
		(void)snprintf(noted.data_hash, sizeof noted.data_hash, "to be published");
	if (run_config_idle_text(&noted, &idle) > 0)
		(void)fprintf(stderr, "note: %s\n", idle.text);
}

static enum rv_err read_hosts(struct run_about *about, struct rv_errtext *et) {
	char given[sizeof about->text_hosts];
	memcpy(given, about->text_hosts, sizeof given);
	return mirror_hosts_read(given, about->text_hosts, sizeof about->text_hosts, et);
}

/* Completes the run from its text, and writes values for defaults: all workers agree on the
 * configuration, whatever another version has as defaults. */
static enum rv_err prepare(void *opts, struct rv_errtext *et) {
	struct new_run_options *o = opts;
	struct run_config *run = &o->run;
	RV_TRY(run_text_adopt(&o->text, run, et));
	if (run->data_hash[0] && !o->text.data[0])
		(void)fprintf(stderr,
					  "note: data-hash without --data: members fetch the text from here only if `serve --text DIR` "
					  "names a copy\n");
	if (run_audits_check(run, o->text.data[0] != '\0', NULL) == RV_OK) /* else the run is refused, with the reason */
		note_idle(run, o->text.data[0] != '\0');
	run_config_resolve(run);
	global_resolve_chunks(run);
	if (!o->about.text_license[0])
		run_text_license(&o->text, o->about.text_license, sizeof o->about.text_license);
	if (o->about.text_hosts[0])
		RV_TRY(read_hosts(&o->about, et));
	else
		run_text_hosts(&o->text, o->about.text_hosts, sizeof o->about.text_hosts);
	note_fp32(run);
	return RV_OK;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct new_run_options *o = opts;
	RV_TRY(run_about_check(&o->about, et));
	if (o->text.data[0])
		RV_TRY(run_config_check_leases(&o->run, et));
	RV_TRY(run_audits_check(&o->run, o->text.data[0] != '\0', et));
	return global_check_run(&o->run, et);
}

static void explain(const void *opts, FILE *out) {
	char text[RUN_SILENCE_TEXT_BYTES];
	run_silence_print(&((const struct new_run_options *)opts)->run, text);
	(void)fputs(text, out);
}

static enum rv_err check_files(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct new_run_options *o = opts;
	struct run_dir d;
	RV_TRY(run_dir_of(o->dir, &d, et));
	if (run_dir_find(o->dir, &d, NULL) == RV_OK)
		return rv_fail(et, RV_E_BUSY, "%s already is the directory of a run: choose another with --dir", o->dir);
	return run_text_check(&o->text, et);
}

/* Keeps where the text is, and what the operator says of the run. */
static enum rv_err keep(const struct run_dir *d, const char *place, const struct run_about *about,
						struct rv_errtext *et) {
	struct store *store;
	char lines[RUN_ABOUT_BYTES];
	run_about_print(about, lines);
	RV_TRY(sqlite_store_open(d->store, &store, et));
	enum rv_err e = place[0] ? store->ops->set(store, RUN_TEXT_PLACE, place, et) : RV_OK;
	if (e == RV_OK && lines[0])
		e = store->ops->set(store, SERVICE_ABOUT, lines, et);
	store_close(store);
	return e;
}

/* Makes the run's keys: root.key, unless it is there, and run.key. */
static enum rv_err make_keys(const struct run_dir *d, const char *root_path, const uint8_t run_id[NET_RUN_ID_BYTES],
							 uint8_t root_key[NET_KEY_BYTES], struct rv_errtext *et) {
	struct identity root = {0};
	struct run_keys keys = {.cert = {.serial = 0}};
	RV_TRY(identity_load_or_create(root_path, &root, NULL, et));
	memcpy(root_key, root.key, NET_KEY_BYTES);
	enum rv_err e = run_keys_make(&root, run_id, 1, &keys, et);
	identity_release(&root);
	if (e == RV_OK)
		e = run_keys_store(d->key, &keys, et);
	run_keys_release(&keys);
	return e;
}

static void print_made(const struct run_dir *d, const char *root_path, const uint8_t run_id[NET_RUN_ID_BYTES],
					   const uint8_t root_key[NET_KEY_BYTES]) {
	char run_hex[2 * NET_RUN_ID_BYTES + 1], key_hex[2 * NET_KEY_BYTES + 1];
	rv_hex_encode(run_id, NET_RUN_ID_BYTES, run_hex);
	rv_hex_encode(root_key, NET_KEY_BYTES, key_hex);
	(void)printf("Made run %s in %s\n"
				 "    public key    %s\n"
				 "    serving key   %s (anyone who has it can act as the coordinator, until `rotate-key`)\n"
				 "    root key      %s (the run itself: move it away from this machine; only `rotate-key` needs it)\n\n"
				 "Next:\n"
				 "    rivulet-coordinator serve --dir %s --listen 0.0.0.0:7433 --advertise HOST:7433\n"
				 "    rivulet-coordinator invite --dir %s --count 4\n",
				 run_hex, d->dir, key_hex, d->key, root_path, d->dir, d->dir);
}

static enum rv_err make(const struct run_dir *d, const char *root_path, const char *config, const char *place,
						const struct run_about *about, struct rv_errtext *et) {
	uint8_t run_id[NET_RUN_ID_BYTES], root_key[NET_KEY_BYTES];
	randombytes_buf(run_id, sizeof run_id);
	RV_TRY(make_keys(d, root_path, run_id, root_key, et));
	RV_TRY(sqlite_store_create(d->store, run_id, config, et));
	RV_TRY(keep(d, place, about, et));
	print_made(d, root_path, run_id, root_key);
	return RV_OK;
}

/* States how much text there is: `dir` is where it lies. */
static enum rv_err state_size(const char *dir, struct run_about *about, struct rv_errtext *et) {
	struct manifest m;
	RV_TRY(manifest_read(dir, &m, et));
	about->text_bytes = manifest_text_bytes(&m);
	about->text_least_bytes = least_room_bytes(&m);
	return RV_OK;
}

/* Makes the run once its text is there: a directory without a store is none, so that an
 * interrupted publication can continue. */
static enum rv_err make_with_text(struct new_run_options *o, const struct run_dir *d, struct rv_errtext *et) {
	char config[NET_MAX_CONFIG_BYTES], place[RUN_TEXT_BYTES];
	if (access(d->store, F_OK) == 0)
		return rv_fail(et, RV_E_BUSY, "%s: there is a run already: choose another directory with --dir", o->dir);
	RV_TRY(run_text_make(&o->text, d, &o->run, place, et));
	if (o->text.data[0])
		RV_TRY(state_size(place[0] ? place : d->text, &o->about, et));
	RV_ASSERT(rv_options_print(run_config_options, &o->run, config, sizeof config) < sizeof config);
	return make(d, o->root_key[0] != '\0' ? o->root_key : d->root_key, config, place, &o->about, et);
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	struct new_run_options *o = opts;
	struct run_dir d;
	int lock = -1;
	RV_TRY(run_dir_of(o->dir, &d, et));
	RV_TRY(rv_dir_make(o->dir, DIR_MODE, et));
	RV_TRY(rv_dir_lock(o->dir, &lock, et));
	enum rv_err e = make_with_text(o, &d, et);
	rv_dir_unlock(lock);
	return e;
}

struct rv_command cmd_new_run(struct rv_option *table) {
	int n = 0;
	for (const struct rv_option *p = own_options; p->name != NULL; p++)
		table[n++] = *p;
	run_text_table(offsetof(struct new_run_options, text), table + n);
	n += RUN_TEXT_OPTIONS - 1;
	for (const struct rv_option *p = run_about_options; p->name != NULL; p++) {
		table[n] = *p;
		table[n++].offset += offsetof(struct new_run_options, about);
	}
	for (const struct rv_option *p = run_config_options; p->name != NULL; p++) {
		RV_ASSERT(n < NEW_RUN_OPTIONS_MAX - 1);
		table[n++] = *p;
	}
	table[n] = (struct rv_option){.name = NULL};
	return (struct rv_command){
		.name = "new-run",
		.synopsis = "",
		.help = "Makes a run: its keys, its configuration, its text, an empty store.",
		.details =
			"Everything that the workers must agree on is decided here and never changes: model, inner loop, outer\n"
			"loop, rounds, the text. Write it into a file and pass it with --config; options not in it have defaults.\n"
			"With --data, Ctrl-C or a crash loses at most a shard of what is published: the same command continues.\n"
			"\n"
			"    rivulet-coordinator new-run --dir run1 --config run.conf --data books/ --tokenizer tokenizer.json\n"
			"    rivulet-coordinator new-run --dir run1 --config run.conf --data fineweb.rv",
		.options = table,
		.presets = run_presets,
		.opts_bytes = sizeof(struct new_run_options),
		.prepare = prepare,
		.check = check,
		.check_files = check_files,
		.explain = explain,
		.run = run,
	};
}
