/* presets.c: the shapes of well-known models, and what a run of strangers needs. Llama's shapes are
 * those of OpenDiLoCo (arXiv 2407.07852, section 3.1), which reproduced DiLoCo (arXiv 2311.08105)
 * with them; GPT-2's are its paper's four sizes. All but the byte-level ones have the vocabulary of
 * the family's own tokenizer. */
#include "base/presets.h"

#include "base/assert.h"
#include "base/options.h"

#include <string.h>

enum { PRESETS_MAX = 64 };

#define SHAPE(layers, heads, channels, tokens, length)                                                                 \
	"n-layer = " #layers "\nn-head = " #heads "\nn-embd = " #channels "\nvocab = " #tokens "\ncontext = " #length "\n"
#define GPT2(layers, heads, channels) "model = gpt2\n" SHAPE(layers, heads, channels, 50257, 1024)
#define LLAMA(layers, heads, kv_heads, channels, inner)                                                                \
	"model = llama\n" SHAPE(layers, heads, channels, 32000, 1024) "n-kv-head = " #kv_heads "\nn-inner = " #inner       \
																  "\ntied = false\n"

#define PRESET(name, help, text) {name, help, text},
const struct rv_preset model_presets[] = {
#include "base/model_presets.def"
	{.name = NULL},
};

/* docs/security.md says what each holds off. */
static const char strangers[] = "merge = agreed\nmin-workers = 3\naudit-chunks = 2\naudit-window = 8\n"
								"audit-rollback = true\naudit-training = 0.02\nprobation = 8\nslow-members = skip\n"
								"ownership = equal\n";

const struct rv_preset run_presets[] = {
#include "base/model_presets.def"
	{"strangers", "beside another: members check each other, for a run open to all", strangers},
	{.name = NULL},
};
#undef PRESET

/* Returns the length of the first option's name that both texts set, and its place; 0: none. */
static size_t common_name(const char *a, const char *b, const char **name) {
	for (*name = a; **name; *name += strcspn(*name, "\n") + 1) {
		const size_t n = strcspn(*name, " ");
		for (const char *other = b; *other; other += strcspn(other, "\n") + 1) {
			if (strcspn(other, " ") == n && strncmp(*name, other, n) == 0)
				return n;
		}
	}
	return 0;
}

enum rv_err rv_presets_agree(const struct rv_preset *first, const struct rv_preset *second, struct rv_errtext *et) {
	const char *name;
	const size_t n = common_name(first->text, second->text, &name);
	if (n == 0)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "preset = %.60s: sets %.*s, as preset %.60s does; name one of the two",
				   second->name, (int)n, name, first->name);
}

enum rv_err rv_preset_find(const struct rv_preset *presets, const char *name, const struct rv_preset **out,
						   struct rv_errtext *et) {
	const char *names[PRESETS_MAX];
	char all[512] = "";
	int n = 0;
	for (const struct rv_preset *p = presets; p->name; p++) {
		if (strcmp(p->name, name) == 0) {
			*out = p;
			return RV_OK;
		}
		RV_ASSERT(n < PRESETS_MAX);
		names[n++] = p->name;
		size_t used = strlen(all);
		(void)snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", p->name);
	}
	const char *near = rv_nearest_name(name, names, n);
	if (near)
		return rv_fail(et, RV_E_INVALID, "preset %.60s: unknown; did you mean %s?", name, near);
	return rv_fail(et, RV_E_INVALID, "preset %.60s: unknown; one of %s", name, all);
}

void rv_presets_help(const struct rv_preset *presets, FILE *out) {
	for (const struct rv_preset *p = presets; p->name; p++)
		(void)fprintf(out, "        %-12s %s\n", p->name, p->help);
}
