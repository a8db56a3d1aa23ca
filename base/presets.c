/* presets.c: the shapes of well-known models. Llama's are those of OpenDiLoCo (arXiv 2407.07852,
 * section 3.1), which reproduced DiLoCo (arXiv 2311.08105) with them; GPT-2's are its paper's four
 * sizes. All but the byte-level ones have the vocabulary of the family's own tokenizer. */
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

const struct rv_preset model_presets[] = {
	{"nano", "GPT-2, 4 x 128, bytes, 0.8 M parameters: the demo", "model = gpt2\n" SHAPE(4, 4, 128, 256, 64)},
	{"micro", "GPT-2, 6 x 384, bytes, 11 M parameters: a laptop's evening",
	 "model = gpt2\n" SHAPE(6, 6, 384, 256, 256)},
	{"gpt2-124m", "GPT-2 small, 12 x 768", GPT2(12, 12, 768)},
	{"gpt2-350m", "GPT-2 medium, 24 x 1024", GPT2(24, 16, 1024)},
	{"gpt2-774m", "GPT-2 large, 36 x 1280", GPT2(36, 20, 1280)},
	{"gpt2-1.5b", "GPT-2 XL, 48 x 1600", GPT2(48, 25, 1600)},
	{"gpt2-7b", "GPT-2's form, 34 x 4096, 7.1 G parameters", GPT2(34, 32, 4096)},
	{"llama-nano", "Llama, 4 x 128, bytes, 0.8 M parameters",
	 "model = llama\n" SHAPE(4, 4, 128, 256, 64) "n-kv-head = 2\nn-inner = 384\n"},
	{"llama-60m", "Llama of OpenDiLoCo, 3 x 1024", LLAMA(3, 16, 16, 1024, 2688)},
	{"llama-150m", "Llama of OpenDiLoCo, 12 x 1024", LLAMA(12, 16, 16, 1024, 2688)},
	{"llama-1b", "Llama of OpenDiLoCo, 22 x 2048, 4 heads of keys and values", LLAMA(22, 32, 4, 2048, 5632)},
	{"llama-7b", "Llama's first 7B, 32 x 4096, 6.7 G parameters", LLAMA(32, 32, 32, 4096, 11008)},
	{.name = NULL},
};

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
