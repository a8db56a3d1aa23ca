/* options.c: the option table of rivulet-worker. */
#include "worker/options/options.h"

#include "net/address.h"
#include "net/invite.h"
#include "net/mesh/rate.h"
#include "train/eval_schedule.h"
#include "worker/options/input_checks.h"
#include "worker/state/checkpoint_index.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The lowest cap: below it, one packet is more than the few percent by which a cap may be
 * exceeded. */
enum { LEAST_CAP_BYTES_PER_S = 12500 };

#define FIELD(f) offsetof(struct worker_options, f)
#define CAP(f)   sizeof(((struct worker_options *)0)->f)

const struct rv_option worker_options_table[] = {
	{"dir", RV_OPT_STRING, FIELD(dir), CAP(dir), "rivulet-worker", 0, 0, NULL,
	 "Directory of this worker's key and state. A later start with the same one goes on where this one stopped.",
	 "Worker"},
	{"data", RV_OPT_STRING, FIELD(data), CAP(data), "", 0, 0, NULL,
	 "Training text or token shards: a file, a directory, a pattern, or https://URL#sha256=HEX. Remembered in --dir "
	 "until another is given.",
	 "Worker"},
	{"tokenizer", RV_OPT_STRING, FIELD(tokenizer), CAP(tokenizer), "", 0, 0, NULL,
	 "The run's tokenizer (tokenizer.json), which makes tokens of text; token shards and runs on bytes need none. "
	 "Remembered in --dir.",
	 "Worker"},
	{"init", RV_OPT_STRING, FIELD(init), CAP(init), "", 0, 0, NULL,
	 "The initial weights, if the run starts from given ones: a Hugging Face directory or a safetensors file. Without "
	 "it they are fetched from another worker.",
	 "Worker"},
	{"shard", RV_OPT_INT, FIELD(shard), 0, "-1", -1, 1023, NULL,
	 "The run's data shard to read; -1: this member's number modulo data-shards.", "Worker"},
	{"name", RV_OPT_STRING, FIELD(name), CAP(name), "", 0, 0, NULL,
	 "This worker's name in the run's status; empty: \"worker\" and its number. Sent once, at the join.", "Worker"},
	{"keep-snapshots", RV_OPT_INT, FIELD(keep_snapshots), 0, "2", 0, CHECKPOINT_MAX_KEEP, NULL,
	 "Snapshots kept on disk, for joiners and restarts: the one that joiners start from and those before it; 0: all.",
	 "Worker"},
	{"keep-log", RV_OPT_INT, FIELD(keep_log), 0, "0", 0, CHECKPOINT_MAX_KEEP, NULL,
	 "Least number of rounds of the log to keep, for workers that were away and for `rivulet export --round`; 0: those "
	 "after the oldest snapshot.",
	 "Worker"},
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, 256, NULL, "Threads for training; 0: all processors.",
	 "Computing"},
	{"device", RV_OPT_STRING, FIELD(device), CAP(device), "auto", 0, 0, NULL, DEVICE_HELP, "Computing"},
	{"recompute", RV_OPT_CHOICE, FIELD(recompute), 0, "auto", 0, 0, "auto|none|block",
	 "block: store less for the backward pass and recompute it: much less memory, about a third slower. auto: only if "
	 "memory is too small for none.",
	 "Computing"},
	MEMORY_SHORT_OPTION(FIELD(short_of_memory), "Computing"),
	{"eval-every", RV_OPT_INT, FIELD(eval_every), 0, EVAL_EVERY_DEFAULT, EVAL_EVERY_CHOSEN, 1000000, NULL,
	 "Rounds between measurements of the held-out loss, by the first participant; it also measures at the end. 0: "
	 "never; -1: as often as takes about a tenth of its time, at least four times.",
	 "Computing"},
	{"eval-tokens", RV_OPT_INT, FIELD(eval_tokens), 0, EVAL_TOKENS_DEFAULT, 0, 1e12, NULL, EVAL_TOKENS_HELP,
	 "Computing"},
	{"listen", RV_OPT_STRING, FIELD(listen), CAP(listen), "", 0, 0, NULL,
	 "HOST:PORT on which to accept other workers; port 0: any free one. Empty: port 7434 of all addresses, or the next "
	 "free one.",
	 "Network"},
	{"map-port", RV_OPT_BOOL, FIELD(map_port), 0, "yes", 0, 0, NULL,
	 "Asks your router to forward a port to this worker (PCP, NAT-PMP, UPnP), so that others can reach it; removed at "
	 "the end. Not asked if the coordinator is on your own network, or with --advertise.",
	 "Network"},
	{"advertise", RV_OPT_STRING, FIELD(advertise), CAP(advertise), "", 0, 0, NULL,
	 "HOST:PORT at which other workers reach this one (a name is looked up once, at the start); empty: the address "
	 "that the coordinator sees, with the listening port.",
	 "Network"},
	{"max-up", RV_OPT_RATE, FIELD(max_up), 0, "0", LEAST_CAP_BYTES_PER_S, (double)RATE_MAX_BYTES_PER_S, NULL,
	 "Most that it sends to other workers, such as 5mbit or 600KB: TCP/IP headers included, over any 10 s. unlimited: "
	 "no "
	 "cap.",
	 "Network"},
	{"max-down", RV_OPT_RATE, FIELD(max_down), 0, "0", LEAST_CAP_BYTES_PER_S, (double)RATE_MAX_BYTES_PER_S, NULL,
	 "Most that it receives from them.", "Network"},
	{"max-donate", RV_OPT_RATE, FIELD(max_donate), 0, "100mbit", LEAST_CAP_BYTES_PER_S, (double)RATE_MAX_BYTES_PER_S,
	 NULL,
	 "Most that it sends of the run's state to workers that lack it; unlimited: no cap of its own. A worker gets at "
	 "most "
	 "two whole states an hour besides the result of each round; and while the workers average, a joiner gets a tenth "
	 "of "
	 "what averaging sends, and one that fell behind at most as much again.",
	 "Network"},
	{"relay-for-others", RV_OPT_STRING, FIELD(relay_for_others), CAP(relay_for_others), "none", 0, 0, NULL,
	 "Runs a relay for members that cannot reach each other, and forwards (ciphertext) up to this rate for them, such "
	 "as 5mbit: your line receives it and sends it. The run lists it once another member has reached it. none: no "
	 "relay.",
	 "Network"},
	{"relay-for-others-per-day", RV_OPT_BYTES, FIELD(relay_per_day), 0, "20GiB", 0, 9007199254740992.0, NULL,
	 "Most that it forwards in 24 hours; 0: any number.", "Network"},
	{"relay-for-others-port", RV_OPT_INT, FIELD(relay_port), 0, "0", 0, 65535, NULL,
	 "Port of that relay; 0: 7435, or the next free one. Your router is asked to forward it, as with --map-port.",
	 "Network"},
	{"log-file", RV_OPT_STRING, FIELD(log_file), CAP(log_file), "", 0, 0, NULL,
	 "Also write every event to this file, one JSON object per line.", "Output"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

enum rv_err worker_options_relay_rate(const struct worker_options *o, int64_t *out, struct rv_errtext *et) {
	static const struct rv_option rate[] = {{"relay-for-others", RV_OPT_RATE, 0, 0, "0", LEAST_CAP_BYTES_PER_S,
											 (double)RATE_MAX_BYTES_PER_S, NULL, NULL, NULL},
											{.name = NULL}};
	*out = 0;
	if (o->relay_for_others[0] == '\0' || strcmp(o->relay_for_others, "none") == 0)
		return RV_OK;
	if (strcmp(o->relay_for_others, "unlimited") == 0)
		return rv_fail(et, RV_E_INVALID, "relay-for-others: must be a rate such as 5mbit, or none");
	return rv_options_set(rate, out, "relay-for-others", o->relay_for_others, et);
}

enum rv_err worker_options_check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct worker_options *o = opts;
	struct address a;
	struct invite invite;
	if (args->n > 0)
		RV_TRY(invite_parse(args->at[0], &invite, et));
	if (!o->dir[0])
		return rv_fail(et, RV_E_INVALID, "dir: must not be empty");
	struct device_choice device;
	RV_TRY(device_parse(o->device, &device, et));
	enum rv_err e = o->listen[0] ? address_parse(o->listen, &a, et) : RV_OK;
	if (e != RV_OK)
		return rv_fail_context(et, e, "listen");
	int64_t rate;
	RV_TRY(worker_options_relay_rate(o, &rate, et));
	if (!o->advertise[0])
		return RV_OK;
	e = address_parse(o->advertise, &a, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "advertise");
}

/* Checks --data; skips a URL, and what --dir remembers, which was checked when it was given. */
static enum rv_err check_data(const struct worker_options *o, struct rv_errtext *et) {
	char remembered[sizeof o->dir + 16];
	(void)snprintf(remembered, sizeof remembered, "%s/member.conf", o->dir);
	bool is_remembered = !o->data[0] && access(remembered, R_OK) == 0;
	if (is_remembered || strstr(o->data, "://"))
		return RV_OK;
	enum rv_err e = input_check_data(o->data, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--data");
}

enum rv_err worker_options_check_files(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct worker_options *o = opts;
	char remembered[sizeof o->dir + 16];
	(void)snprintf(remembered, sizeof remembered, "%s/run.link", o->dir);
	if (args->n == 0 && access(remembered, R_OK) != 0)
		return rv_fail(et, RV_E_NOTFOUND, "no invite link was given, and %s remembers none", o->dir);
	struct device_choice device;
	RV_TRY(device_choose(o->device, &device, et));
	RV_TRY(check_data(o, et));
	RV_TRY(input_check_weights(o->init, et));
	return input_check_tokenizer(o->tokenizer, et);
}
