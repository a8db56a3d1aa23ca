/* data.c: the table of `rivulet data`, and which options belong to which verb. */
#include "lab/data/data.h"
#include "base/assert.h"
#include "base/option_value.h"
#include "lab/commands/commands.h"
#include "train/text/documents/documents.h"

#include <string.h>

#define FIELD(f) offsetof(struct data_options, f)
#define CAP(f)   sizeof(((struct data_options *)0)->f)

/* The group of an option begins with the verbs that it is for. */
#define PUBLISH "publish"
#define BOTH    "publish, verify"

static const struct rv_option options[] = {
	{"out", RV_OPT_STRING, FIELD(out), CAP(out), "", 0, 0, NULL, "The directory to publish into; made if missing.",
	 PUBLISH},
	{"tokenizer", RV_OPT_STRING, FIELD(tokenizer), CAP(tokenizer), "bytes", 0, 0, NULL,
	 "A tokenizer.json, a tiktoken file, or \"bytes\"; its file becomes part of what is published. Of files of tokens: "
	 "the one that made them.",
	 PUBLISH},
	{"pattern", RV_OPT_STRING, FIELD(pattern), CAP(pattern), "auto", 0, 0, NULL,
	 "For tiktoken files, as in rivulet tokenize.", PUBLISH},
	{"format", RV_OPT_CHOICE, FIELD(format), 0, "auto", 0, 0, "auto|llmc|nanogpt",
	 "Files are told apart by their contents, but those of nanoGPT's prepare.py, 16-bit tokens without a header, must "
	 "be named.",
	 PUBLISH},
	{"field", RV_OPT_STRING, FIELD(field), CAP(field), DOCUMENTS_FIELD_DEFAULT, 0, 0, NULL, DOCUMENTS_FIELD_HELP,
	 PUBLISH},
	{"split", RV_OPT_STRING, FIELD(split), CAP(split), "", 0, 0, NULL,
	 "Of a Hugging Face data set's directory, the files whose names begin with it. Empty: train, or all where names "
	 "tell no split.",
	 PUBLISH},
	{"separator", RV_OPT_STRING, FIELD(separator), CAP(separator), "auto", 0, 0, NULL,
	 "The special token before each document; auto: the tokenizer's end of text; none.", PUBLISH},
	{"holdout", RV_OPT_INT, FIELD(holdout_every), 0, "50", 2, 1000000, NULL,
	 "One block of 16384 tokens in so many is for evaluation, never for training (a run's holdout-every).", PUBLISH},
	{"shard-tokens", RV_OPT_INT, FIELD(shard_tokens), 0, "2097152", 16384, 268435456, NULL,
	 "Tokens in a shard, a multiple of 16384; members fetch and check whole shards.", PUBLISH},
	{"license", RV_OPT_STRING, FIELD(license), CAP(license), "", 0, 0, NULL,
	 "What members may do with the text, best an SPDX identifier; else what a data set's README.md states.", PUBLISH},
	{"description", RV_OPT_STRING, FIELD(description), CAP(description), "", 0, 0, NULL, "A sentence about the text.",
	 PUBLISH},
	{"mirror", RV_OPT_LIST, FIELD(mirrors), CAP(mirrors), "", 0, 0, NULL,
	 "A URL where a copy of the directory is or will be: https://... May be given several times, and changed in "
	 "manifest.json later: data-hash does not cover it.",
	 PUBLISH},
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, 256, NULL, "Threads; 0: all cores.", BOTH},
	{"documents", RV_OPT_INT, FIELD(documents), 0, "3", 0, 1000, NULL, "Documents to show, from the beginning.",
	 "inspect"},
	{"port", RV_OPT_INT, FIELD(port), 0, "8080", 0, 65535, NULL, "The port to serve at; 0: any free one.", "serve"},
	{"listen", RV_OPT_STRING, FIELD(listen), CAP(listen), "", 0, 0, NULL,
	 "The address to serve at, as a number; empty: all of this machine's.", "serve"},
	{"connections", RV_OPT_INT, FIELD(connections), 0, "64", 1, 256, NULL,
	 "Connections at a time, of one host half of them; others wait.", "serve"},
	{.name = NULL},
};

static const char *const verbs[] = {"publish", "verify", "inspect", "serve", NULL};
enum { VERBS = sizeof verbs / sizeof verbs[0] - 1 };

static bool is_for(const struct rv_option *o, const char *verb) {
	return strstr(o->group, verb) != NULL;
}

/* Refuses an option without an effect on the verb: a user who gives one expects an effect. */
static enum rv_err check_options(const struct data_options *o, const char *verb, struct rv_errtext *et) {
	struct data_options unset;
	rv_options_defaults(options, &unset);
	for (const struct rv_option *t = options; t->name; t++) {
		if (!rv_option_value_same(t, o, &unset) && !is_for(t, verb))
			return rv_fail(et, RV_E_INVALID, "--%s: for data %s only, data %s does not use it", t->name, t->group,
						   verb);
	}
	return RV_OK;
}

static enum rv_err check_publish(const struct data_options *o, const struct rv_args *args, struct rv_errtext *et) {
	if (args->n < 2)
		return rv_fail(et, RV_E_INVALID, "data publish: which text? rivulet data publish FILES... --out DIR");
	if (!o->out[0])
		return rv_fail(et, RV_E_INVALID, "data publish: --out DIR is missing");
	if (o->shard_tokens % 16384 != 0)
		return rv_fail(et, RV_E_INVALID, "shard-tokens = %lld: must be a multiple of 16384; the nearest is %lld",
					   (long long)o->shard_tokens, (long long)((o->shard_tokens + 8192) / 16384 * 16384));
	return RV_OK;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct data_options *o = opts;
	const char *verb = args->at[0];
	if (!rv_name_is_one_of(verb, verbs)) {
		const char *near = rv_nearest_name(verb, verbs, VERBS);
		return rv_fail(et, RV_E_INVALID, "data %s: must be publish, verify, inspect or serve%s%s%s", verb,
					   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
	RV_TRY(check_options(o, verb, et));
	if (strcmp(verb, "publish") == 0)
		return check_publish(o, args, et);
	return args->n == 2 ? RV_OK
						: rv_fail(et, RV_E_INVALID, "data %s: takes one directory: rivulet data %s DIR", verb, verb);
}

static enum rv_err run_data(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct data_options *o = opts;
	const char *verb = args->at[0];
	if (strcmp(verb, "publish") == 0)
		return data_publish(o, args->at + 1, args->n - 1, et);
	if (strcmp(verb, "verify") == 0)
		return data_verify(o, args->at[1], et);
	if (strcmp(verb, "serve") == 0)
		return data_serve(o, args->at[1], et);
	RV_ASSERT(strcmp(verb, "inspect") == 0);
	return data_inspect(o, args->at[1], et);
}

const struct rv_command data_command = {
	.name = "data",
	.synopsis = "publish FILES... | verify DIR | inspect DIR | serve DIR",
	.args_min = 1,
	.args_max = RV_PROGRAM_ARGS_MAX,
	.help = "Publish text for a run, check it, show it, serve it.",
	.details =
		"publish turns text into shards of tokens, each hashed, under a manifest whose hash (data-hash) names all of\n"
		"it: who has this hash can check every byte, from wherever it came. FILES are text, JSON Lines, both also as\n"
		".gz or .zst, Parquet, token files of llm.c or nanoGPT, or a Hugging Face data set's directory. Memory does\n"
		"not grow with the text; Ctrl-C or a crash loses at most a shard, and the same command continues. Once all\n"
		"is there, the same command checks every shard's hash, and makes damaged and missing ones again.\n"
		"\n"
		"    rivulet data publish fineweb/ --tokenizer tokenizer.json --license odc-by --out fineweb.rv\n"
		"    rivulet data publish 'books/*.txt.gz' --tokenizer tokenizer.json --out books.rv\n"
		"    rivulet data publish train.bin --format nanogpt --tokenizer gpt2.tiktoken --out owt.rv\n"
		"    rivulet data verify fineweb.rv      reads every shard; exit status 1 names what is damaged\n"
		"    rivulet data inspect fineweb.rv     facts, and the first documents as text\n"
		"    rivulet data serve fineweb.rv --port 8080     over HTTP with ranges; any static web server will do, too\n"
		"    rivulet train --data fineweb.rv --tokenizer fineweb.rv/tokenizer.json\n"
		"\n"
		"docs/data.md describes the files.",
	.options = options,
	.opts_bytes = sizeof(struct data_options),
	.check = check,
	.run = run_data,
};
