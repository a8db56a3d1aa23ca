/* A model that writes with its cache writes what it would write without one. */
#include "tests/lab/lab_fixture.h"

#include "lab/model/generator.h"

#include <string.h>

enum { CONTEXT = 16, VOCAB = 256 };

static struct lab_fixture f;
static struct loaded_model *m;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	struct lab_run *r = lab_fixture_finished(&f);
	m = lab_fixture_reload(&f, r, 1);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	loaded_model_close(m);
	lab_fixture_release(&f);
	return 0;
}

static const struct sampler_params greedy = {.temperature = 0, .top_p = 1};

static struct generator *started(const struct sampler_params *p, const char *prompt) {
	struct generator *g;
	int32_t tokens[256];
	size_t n = strlen(prompt);
	assert_int_equal(generator_new(m, p, 5, &g, NULL), RV_OK);
	for (size_t i = 0; i < n; i++)
		tokens[i] = (unsigned char)prompt[i];
	generator_read(g, tokens, n);
	return g;
}

static int likeliest_after(const int32_t *tokens, int n) {
	float logits[VOCAB];
	int best = 0;
	model_forward(m->model, m->params, tokens, 1, n);
	m->model->ops->logits(m->model, m->params, n - 1, 1, logits);
	for (int i = 0; i < VOCAB; i++)
		if (logits[i] > logits[best])
			best = i;
	return best;
}

static void test_writes_what_forward_passes_say(void **state) {
	(void)state;
	int32_t text[CONTEXT] = {'t', 'h', 'e'};
	struct generator *g = started(&greedy, "the");
	for (int n = 3; n < CONTEXT; n++) {
		text[n] = generator_next(g);
		assert_int_equal(text[n], likeliest_after(text, n));
	}
	generator_free(g);
}

/* When the context is full, the next token follows from the latter half of it and what came
 * since. */
static void test_goes_on_past_the_context(void **state) {
	(void)state;
	int32_t text[3 * CONTEXT] = {'r', 'i'};
	int n = 2, seen_from = 0;
	struct generator *g = started(&greedy, "ri");
	while (n < 3 * CONTEXT) {
		text[n] = generator_next(g);
		assert_int_equal(text[n], likeliest_after(text + seen_from, n - seen_from));
		n++;
		if (n - seen_from > CONTEXT)
			seen_from = n - 1 - CONTEXT / 2;
	}
	generator_free(g);
}

static void test_a_long_prompt_counts_by_its_end(void **state) {
	(void)state;
	const char *prompt = "the stream joins a river and flows on the stream joins the";
	struct generator *whole = started(&greedy, prompt);
	int32_t first = generator_next(whole);
	generator_free(whole);
	struct generator *end = started(&greedy, prompt + strlen(prompt) - CONTEXT);
	assert_int_equal(generator_next(end), first);
	generator_free(end);
}

/* However a text is cut into reads, what counts is its end. */
static void test_reads_of_any_length(void **state) {
	(void)state;
	const char *text = "the stream joins a river and flows on the stream joins the river and flows on";
	static const int lengths[][4] = {{3, 15, 0}, {15, 15, 0}, {1, 16, 3, 0}, {16, 1, 16, 0}, {9, 9, 9, 0}};
	for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
		struct generator *g;
		assert_int_equal(generator_new(m, &greedy, 1, &g, NULL), RV_OK);
		for (int i = 0, at = 0; lengths[l][i]; at += lengths[l][i++]) {
			int32_t tokens[CONTEXT];
			for (int k = 0; k < lengths[l][i]; k++)
				tokens[k] = (unsigned char)text[at + k];
			generator_read(g, tokens, (size_t)lengths[l][i]);
		}
		assert_in_range(generator_next(g), 0, VOCAB - 1);
		generator_free(g);
	}
}

static void test_same_seed_same_text(void **state) {
	(void)state;
	const struct sampler_params warm = {.temperature = 1.5, .top_p = 1};
	int32_t text[2][2 * CONTEXT];
	for (int k = 0; k < 2; k++) {
		struct generator *g = started(&warm, "on");
		for (int i = 0; i < 2 * CONTEXT; i++)
			text[k][i] = generator_next(g);
		generator_free(g);
	}
	assert_memory_equal(text[0], text[1], sizeof text[0]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes_what_forward_passes_say),
		cmocka_unit_test(test_goes_on_past_the_context),
		cmocka_unit_test(test_a_long_prompt_counts_by_its_end),
		cmocka_unit_test(test_reads_of_any_length),
		cmocka_unit_test(test_same_seed_same_text),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
