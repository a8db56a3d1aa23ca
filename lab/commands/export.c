/* export.c: `rivulet export`: weights in the formats of other programs. */
#include "base/file.h"
#include "base/hex.h"
#include "lab/commands/commands.h"
#include "lab/run/console.h"
#include "lab/worker_files/export_source.h"
#include "train/files/gguf.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum form { FORM_AUTO, FORM_HF, FORM_GGUF };

struct export_options {
	char out[512], tokenizer[512];
	int form, dtype; /* enum form, enum weights_format */
	int64_t round, max_file_bytes;
	bool force;
};

#define FIELD(f) offsetof(struct export_options, f)
#define CAP(f)   sizeof(((struct export_options *)0)->f)

static const struct rv_option options[] = {
	{"out", RV_OPT_STRING, FIELD(out), CAP(out), NULL, 0, 0, NULL,
	 "hf: the directory to write; gguf: the file, or a directory for model.gguf.", "Export"},
	{"format", RV_OPT_CHOICE, FIELD(form), 0, "auto", 0, 0, "auto|hf|gguf",
	 "hf: a directory that transformers and lm-eval load; gguf: a file that llama.cpp loads; auto: gguf when the name "
	 "of "
	 "--out ends in .gguf, else hf.",
	 "Export"},
	{"dtype", RV_OPT_CHOICE, FIELD(dtype), 0, "fp32", 0, 0, "fp32|bf16|fp16",
	 "Type that values are rounded to. fp16 is for gguf.", "Export"},
	{"tokenizer", RV_OPT_STRING, FIELD(tokenizer), CAP(tokenizer), "", 0, 0, NULL,
	 "The tokenizer.json to go with the weights; empty: the one beside them, or bytes.", "Export"},
	{"round", RV_OPT_INT, FIELD(round), 0, "-1", -1, 9007199254740992.0, NULL,
	 "For a worker's directory: the weights after this many rounds; -1: the newest.", "Export"},
	{"max-file-bytes", RV_OPT_BYTES, FIELD(max_file_bytes), 0, "0", 0, 9007199254740992.0, NULL,
	 "hf: several files and an index when the weights are larger than this; 0: one file.", "Export"},
	{"force", RV_OPT_BOOL, FIELD(force), 0, "no", 0, 0, NULL,
	 "Also into a directory with other files, or over a file that is there: those of the same names are replaced.",
	 "Export"},
	{.name = NULL},
};

static bool is_gguf(const struct export_options *o) {
	static const char suffix[] = ".gguf";
	size_t n = strlen(o->out), n_suffix = sizeof suffix - 1;
	if (o->form != FORM_AUTO)
		return o->form == FORM_GGUF;
	return n > n_suffix && strcasecmp(o->out + n - n_suffix, suffix) == 0;
}

/* Writes the path of the file: `out`, or a file in it if it is a directory or ends in "/". */
static void gguf_path(const char *out, char path[static PATH_MAX]) {
	struct stat st;
	size_t n = strlen(out);
	bool slash = n > 0 && out[n - 1] == '/', directory = stat(out, &st) == 0 && S_ISDIR(st.st_mode);
	snprintf(path, PATH_MAX, "%s%s", out, slash ? "model.gguf" : directory ? "/model.gguf" : "");
}

/* Finds a file in a directory; returns false if it is empty, or none. */
static bool holds_files(const char *path, char name[static NAME_MAX + 1]) {
	DIR *dir = opendir(path);
	bool any = false;
	for (struct dirent *d; dir && !any && (d = readdir(dir));) {
		any = strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
		(void)snprintf(name, NAME_MAX + 1, "%s", d->d_name);
	}
	if (dir)
		closedir(dir);
	return any;
}

/* Refuses to write over what is there. */
static enum rv_err check_files(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct export_options *o = opts;
	char name[NAME_MAX + 1], file[PATH_MAX];
	struct stat st;
	(void)args;
	if (o->force)
		return RV_OK;
	if (!is_gguf(o))
		return holds_files(o->out, name)
				   ? rv_fail(et, RV_E_INVALID,
							 "--out %s: the directory holds other files (such as %.100s), which an export could "
							 "replace: choose one that is new or empty, or write into this one with --force",
							 o->out, name)
				   : RV_OK;
	gguf_path(o->out, file);
	return stat(file, &st) == 0 && !S_ISDIR(st.st_mode)
			   ? rv_fail(et, RV_E_INVALID,
						 "--out %s: the file is there: choose another name, or replace it with --force", file)
			   : RV_OK;
}

/* Writes the export. *warning: what is missing in the result. */
static enum rv_err write_export(const struct export_options *o, const char *where, const struct export_source *s,
								char written[static PATH_MAX], struct rv_errtext *warning, struct rv_errtext *et) {
	enum weights_format format = (enum weights_format)o->dtype;
	const struct weights_source w = {.cfg = &s->cfg,
									 .layout = &s->layout,
									 .params = s->params,
									 .origin = s->origin,
									 .origin_dir = where,
									 .tokenizer_file = s->tokenizer[0] ? s->tokenizer : NULL,
									 .warning = warning,
									 .dtype = format == WEIGHTS_BF16 ? DTYPE_BF16 : DTYPE_F32,
									 .max_file_bytes = (uint64_t)o->max_file_bytes};
	if (is_gguf(o)) {
		gguf_path(o->out, written);
		if (o->out[strlen(o->out) - 1] == '/')
			RV_TRY(rv_dir_make(o->out, 0755, et));
		return gguf_save(written, &w, format, et);
	}
	snprintf(written, PATH_MAX, "%s", o->out);
	return weights_save_directory(written, &w, et);
}

static uint64_t count_params(const struct model_layout *l) {
	uint64_t n = 0;
	for (int i = 0; i < l->n_tensors; i++)
		n += l->tensors[i].elems;
	return n;
}

static enum rv_err say(const struct export_options *o, const struct export_source *s, const char *written,
					   const char *warning, struct rv_errtext *et) {
	struct rv_events *events;
	char state[2 * RV_HASH_BYTES + 1];
	static const char *const dtypes[] = {[WEIGHTS_F32] = "fp32", [WEIGHTS_BF16] = "bf16", [WEIGHTS_F16] = "fp16"};
	uint64_t n = count_params(&s->layout);
	RV_TRY(console_events(stdout, &events, et));
	rv_hex_encode(s->origin.state.b, RV_HASH_BYTES, state);
	rv_event(events, RV_INFO, "exported",
			 RV_FIELDS(rv_field_str("out", written), rv_field_str("format", is_gguf(o) ? "gguf" : "hf"),
					   rv_field_str("dtype", dtypes[o->dtype]), rv_field_str("model", model_facts[s->cfg.model].name),
					   rv_field_int("parameters", (int64_t)n), rv_field_int("round", (int64_t)s->origin.round),
					   rv_field_str("state", state)),
			 "%s: %s, %.2f M parameters in %s, after round %" PRIu64, written, model_facts[s->cfg.model].name,
			 (double)n * 1e-6, dtypes[o->dtype], s->origin.round);
	if (warning[0])
		rv_event(events, RV_WARN, "no_tokenizer", RV_FIELDS(rv_field_str("out", written)), "%s", warning);
	rv_events_free(events);
	return RV_OK;
}

/* Opens the source. Reports damage on stderr: stdout is the result's. */
static enum rv_err open_source(const char *where, const struct export_options *o, struct export_source *s,
							   struct rv_errtext *et) {
	struct rv_events *events;
	RV_TRY(console_events(stderr, &events, et));
	enum rv_err e = export_source_open(where, o->round, o->tokenizer, events, s, et);
	rv_events_free(events);
	return e;
}

static enum rv_err run_export(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct export_options *o = opts;
	struct export_source s;
	char written[PATH_MAX];
	struct rv_errtext warning = {""};
	RV_TRY(check_files(o, args, et));
	RV_TRY(open_source(args->at[0], o, &s, et));
	enum rv_err e = write_export(o, args->at[0], &s, written, &warning, et);
	if (e == RV_OK)
		e = say(o, &s, written, warning.text, et);
	export_source_release(&s);
	return e;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct export_options *o = opts;
	(void)args;
	bool gguf = is_gguf(o);
	if (o->out[0] == '\0')
		return rv_fail(et, RV_E_INVALID, "--out: name the directory or the file to write");
	if (!gguf && o->dtype == WEIGHTS_F16)
		return rv_fail(et, RV_E_INVALID, "--dtype fp16: for --format gguf only; use bf16, which has fp32's range");
	if (gguf && o->max_file_bytes > 0)
		return rv_fail(et, RV_E_INVALID, "--max-file-bytes: a gguf export is one file");
	return RV_OK;
}

const struct rv_command export_command = {
	.name = "export",
	.synopsis = "WHERE",
	.args_min = 1,
	.args_max = 1,
	.help = "Write weights in files that transformers, lm-eval or llama.cpp load.",
	.details =
		"WHERE is a Hugging Face directory, a safetensors file, the directory of a run, or that of a worker, which\n"
		"may be running: the weights after any round that its files still hold are computed again, bit for bit, and\n"
		"checked against the run's chain of hashes.",
	.options = options,
	.opts_bytes = sizeof(struct export_options),
	.check = check,
	.check_files = check_files,
	.run = run_export,
};
