/* test_kernels_sdpa.c: attention by cuDNN, whose place a stand-in takes (stand_in.h), on the
 * emulated CUDA backend: the graphs compute attention; versions, shapes and addresses that cuDNN
 * gets wrong are not asked of it; and whatever fails or is computed wrongly is done by our own
 * kernels, for good, with one line that says why. */
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/sdpa_graph.h"
#include "tests/emu/runtime.h"
#include "tests/emu/sanitizer.h"
#include "tests/kernels/conformance/cases.h"
#include "tests/kernels/cudnn/stand_in.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { V9_19 = 91900, LOG_BYTES = 8192 };

/* ---- what the backend logs ---- */

struct logged {
	char text[LOG_BYTES];
	int lines;
};

static struct {
	FILE *file; /* NULL: stderr is itself */
	int stderr_fd;
} redirected;

static void log_begin(struct logged *l) {
	*l = (struct logged){.lines = 0};
	redirected.file = tmpfile();
	assert_non_null(redirected.file);
	(void)fflush(stderr);
	redirected.stderr_fd = dup(STDERR_FILENO);
	assert_true(redirected.stderr_fd >= 0 && dup2(fileno(redirected.file), STDERR_FILENO) >= 0);
}

static void log_end(struct logged *l) {
	(void)fflush(stderr);
	(void)dup2(redirected.stderr_fd, STDERR_FILENO);
	close(redirected.stderr_fd);
	rewind(redirected.file);
	l->text[fread(l->text, 1, sizeof l->text - 1, redirected.file)] = '\0';
	(void)fclose(redirected.file);
	redirected.file = NULL;
	for (const char *p = l->text; (p = strchr(p, '\n')); p++)
		l->lines++;
}

/* A test that failed left it redirected: what was logged is printed. */
static int log_after(void **state) {
	struct logged l;
	(void)state;
	if (!redirected.file)
		return 0;
	log_end(&l);
	(void)fprintf(stderr, "%s", l.text);
	return 0;
}

static void expect_line(const struct logged *l, const char *direction, const char *words) {
	if (l->lines != 1 || !strstr(l->text, direction) || !strstr(l->text, words))
		fail_msg("not one line with \"%s\" and \"%s\":\n%s", direction, words, l->text);
}

/* ---- attention on both backends ---- */

struct scene {
	struct duo d;
	struct backend *ref, *be;
	int qkv, out, lse, dout, dqkv;
	int descriptors; /* that existed before */
};

static void scene_open(struct scene *s, enum emu_streams streams) {
	struct rv_errtext et = {0};
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_BF16};
	emu_configure(&(struct emu_options){.streams = streams});
	*s = (struct scene){.ref = open_ref(), .descriptors = stand_in.descriptors};
	if (cuda_ops.open(&opt, &s->be, &et) != RV_OK)
		fail_msg("%s", et.text);
	duo_init(&s->d, s->ref, s->be);
}

static void scene_close(struct scene *s) {
	duo_clear(&s->d);
	backend_close(s->be);
	backend_close(s->ref);
	emu_configure(&(struct emu_options){.streams = EMU_EAGER});
	if (*stand_in.misuse)
		fail_msg("%s", stand_in.misuse);
	assert_int_equal(stand_in.descriptors, s->descriptors);
}

static void arrays_of(struct scene *s, struct attention_shape k) {
	size_t n = (size_t)k.b * k.t, width = (size_t)k.heads * k.head_dim;
	size_t qkv_n = n * (size_t)(k.heads + 2 * k.kv_heads) * k.head_dim;
	duo_clear(&s->d);
	s->qkv = duo_random(&s->d, "qkv", DUO_ACT, qkv_n, 2);
	s->out = duo_random(&s->d, "out", DUO_ACT, n * width, 1);
	s->lse = duo_random(&s->d, "lse", DUO_F32, n * k.heads, 1);
	s->dout = duo_random(&s->d, "dout", DUO_ACT, n * width, 1);
	s->dqkv = duo_random(&s->d, "dqkv", DUO_ACT, qkv_n, 1);
}

static struct duo_side on(struct scene *s, struct backend *be) {
	return (struct duo_side){.duo = &s->d, .be = be};
}

static void forward(const struct scene *s, struct duo_side side, struct attention_shape k) {
	side.be->ops->attention_forward(side.be, duo_act(side, s->out), duo_f32(side, s->lse), duo_act(side, s->qkv), k);
}

static void backward(const struct scene *s, struct duo_side side, struct attention_shape k) {
	side.be->ops->attention_backward(side.be, duo_act(side, s->dqkv), duo_act(side, s->dout), duo_act(side, s->qkv),
									 duo_act(side, s->out), duo_f32(side, s->lse), k);
}

static void check_forward(struct scene *s) {
	duo_check(&s->d, s->out, 8e-3);
	duo_check(&s->d, s->lse, TOL_REDUCTION * 2);
}

static void check_backward(struct scene *s) {
	duo_check(&s->d, s->dqkv, 4e-2);
}

/* Forward and backward, against `ref`: whatever does it, it is right. */
static void attend(struct scene *s, struct attention_shape k) {
	struct duo *d = &s->d;
	arrays_of(s, k);
	forward(s, on(s, s->ref), k);
	forward(s, on(s, s->be), k);
	check_forward(s);
	duo_follow(d, s->out);
	duo_follow(d, s->lse);
	backward(s, on(s, s->ref), k);
	backward(s, on(s, s->be), k);
	check_backward(s);
}

static const struct attention_shape usual = {.b = 2, .t = 33, .heads = 2, .kv_heads = 1, .head_dim = 32};

/* Attention twice under a version, quietly; returns how often cuDNN did it. */
static int executions(size_t version, struct attention_shape shape, struct logged *l) {
	struct scene s;
	stand_in_reset(version);
	log_begin(l);
	scene_open(&s, EMU_EAGER);
	attend(&s, shape);
	attend(&s, shape);
	scene_close(&s);
	log_end(l);
	return stand_in.executions;
}

/* ---- the graphs ---- */

static const struct attention_shape shapes[] = {
	{1, 2, 1, 1, 8},   {1, 17, 2, 1, 32}, {2, 33, 4, 2, 64},  {1, 40, 2, 2, 80},
	{2, 17, 3, 3, 96}, {1, 65, 4, 1, 16}, {1, 33, 2, 2, 128}, {3, 128, 1, 1, 8},
};

#ifdef __SANITIZE_ADDRESS__ /* a fiber costs ten times as much */
enum { EVERY = 3 };
#else
enum { EVERY = 1 };
#endif

static void graphs_compute_attention(void **state) {
	(void)state;
	static const size_t versions[] = {90500, V9_19};
	for (size_t v = 0; v < 2; v++)
		for (int i = (int)v % EVERY; i < COUNT(shapes); i += EVERY) {
			struct scene s;
			struct logged l;
			stand_in_reset(versions[v]);
			bool by_both = versions[v] == V9_19 || shapes[i].t % 128 == 0;
			log_begin(&l);
			scene_open(&s, i % 2 ? EMU_LAZY : EMU_EAGER);
			attend(&s, shapes[i]);
			attend(&s, shapes[i]);
			scene_close(&s);
			log_end(&l);
			assert_int_equal(stand_in.executions, by_both ? 4 : 2);
			assert_int_equal(stand_in.plans, by_both ? 2 : 1);
			assert_int_equal(l.lines, by_both ? 0 : 1);
		}
}

/* ---- what is not asked of cuDNN ---- */

static void documented_faults_are_avoided(void **state) {
	(void)state;
	struct attention_shape whole = usual;
	struct logged l;
	whole.t = 128;
	assert_int_equal(executions(91000, whole, &l), 0);
	assert_int_equal(l.lines, 2); /* one for each direction */
	assert_non_null(strstr(l.text, "attention forward (2 x 128 tokens, 2 heads, 1 of keys, head size 32)"));
	assert_non_null(strstr(l.text, "cuDNN 9.10.0: 9.10.0 and 9.10.1 are broken"));
	assert_int_equal(executions(91001, whole, &l), 0);
	assert_int_equal(executions(91002, whole, &l), 4);
	assert_int_equal(l.lines, 0);
	assert_int_equal(executions(91500, usual, &l), 2); /* forward alone: T is no multiple of 128 */
	expect_line(&l, "backward", "before 9.15.1");
	assert_int_equal(executions(91501, usual, &l), 4);
	assert_int_equal(l.lines, 0);
}

static void a_single_token_is_not_asked(void **state) {
	(void)state;
	struct attention_shape one = usual;
	struct logged l;
	one.t = 1;
	assert_int_equal(executions(V9_19, one, &l), 0);
	assert_int_equal(stand_in.plans, 0);
	assert_int_equal(l.lines, 2);
	assert_non_null(strstr(l.text, "it does not support a single token"));
}

static void odd_head_sizes_are_not_asked(void **state) {
	(void)state;
	struct attention_shape odd = usual;
	struct logged l;
	odd.head_dim = 20;
	assert_int_equal(executions(V9_19, odd, &l), 0);
	odd.head_dim = 136;
	assert_int_equal(executions(V9_19, odd, &l), 0);
	assert_int_equal(l.lines, 2);
	assert_non_null(strstr(l.text, "multiples of 8"));
}

/* lse of a layer begins where that of the layer below ends: at a multiple of 16 bytes only with
 * four rows. */
static void addresses_are_checked(void **state) {
	(void)state;
	struct scene s;
	stand_in_reset(V9_19);
	scene_open(&s, EMU_EAGER);
	attend(&s, usual);
	int before = stand_in.executions;
	size_t n = (size_t)usual.b * usual.t * usual.heads;
	const struct duo_side side = on(&s, s.be);
	void *moved;
	assert_int_equal(s.be->ops->alloc(s.be, (n + 1) * sizeof(float), &moved, NULL), RV_OK);
	float *lse = (float *)moved + 1, *host = malloc(n * sizeof *host);
	assert_non_null(host);
	s.be->ops->download(s.be, host, duo_f32(side, s.lse), n * sizeof *host);
	s.be->ops->upload(s.be, lse, host, n * sizeof *host);
	s.be->ops->attention_backward(s.be, duo_act(side, s.dqkv), duo_act(side, s.dout), duo_act(side, s.qkv),
								  duo_act(side, s.out), lse, usual);
	check_backward(&s);
	s.be->ops->attention_forward(s.be, duo_act(side, s.out), lse, duo_act(side, s.qkv), usual);
	assert_int_equal(stand_in.executions, before);
	s.be->ops->free(s.be, moved);
	free(host);
	scene_close(&s);
}

/* The stand-in adds to them as cuDNN did before 9.6: what the emulator's memory holds at first is
 * NaN. */
static void sums_are_zeroed_where_a_version_needs_it(void **state) {
	(void)state;
	struct attention_shape whole = usual;
	struct logged l;
	whole.t = 128;
	assert_int_equal(executions(90501, whole, &l), 4);
	assert_int_equal(l.lines, 0);
	assert_int_equal(executions(90600, whole, &l), 4);
	assert_int_equal(l.lines, 0);
}

static void variables_leave_it_out(void **state) {
	(void)state;
	static const char *const variables[][2] = {{"RIVULET_CUDA_ATTENTION", "own"}, {"RIVULET_CUDA_DETERMINISTIC", "1"}};
	for (int i = 0; i < 2; i++) {
		struct logged l;
		(void)setenv(variables[i][0], variables[i][1], 1);
		assert_int_equal(executions(V9_19, usual, &l), 0);
		assert_int_equal(l.lines, 0);
		(void)unsetenv(variables[i][0]);
	}
}

static void a_missing_library_is_no_fault(void **state) {
	(void)state;
	struct scene s;
	stand_in_reset(V9_19);
	stand_in.missing = true;
	scene_open(&s, EMU_EAGER);
	assert_non_null(strstr(s.be->ops->describe(s.be), "own (the stand-in is missing)"));
	attend(&s, usual);
	scene_close(&s);
	assert_int_equal(stand_in.executions, 0);
}

/* ---- failures ---- */

/* A call fails, at once or when it has worked twice: attention is right all the same, and cuDNN is
 * asked no more. */
static void check_failure(enum stand_in_failure kind, int after, const char *words) {
	struct scene s;
	struct logged l;
	stand_in_reset(V9_19);
	stand_in.fails = kind;
	stand_in.fails_after = after;
	scene_open(&s, EMU_LAZY);
	log_begin(&l);
	for (int i = 0; i < 3; i++) {
		arrays_of(&s, usual);
		forward(&s, on(&s, s.ref), usual);
		forward(&s, on(&s, s.be), usual);
		check_forward(&s);
	}
	log_end(&l);
	expect_line(&l, "attention forward", words);
	assert_int_equal(stand_in.executions, after);
	assert_int_equal(stand_in.failures, kind == STAND_IN_NO_PLAN ? 0 : 1);
	scene_close(&s);
}

static void failures_fall_back_for_good(void **state) {
	(void)state;
	for (int after = 0; after <= 2; after += 2) {
		check_failure(STAND_IN_STREAM, after, "CUDNN_STATUS_BAD_PARAM: Error: the stand-in was asked to fail here");
		check_failure(STAND_IN_PACK, after, "CUDNN_STATUS_EXECUTION_FAILED: Error: the stand-in was asked");
		check_failure(STAND_IN_POINTERS, after, "CUDNN_STATUS_BAD_PARAM");
		check_failure(STAND_IN_FINALIZE, after, "CUDNN_STATUS_BAD_PARAM");
		check_failure(STAND_IN_EXECUTE, after, "cuDNN 9.19.0: CUDNN_STATUS_EXECUTION_FAILED: Error: the stand-in");
	}
	check_failure(STAND_IN_NO_PLAN, 0, "no plan (every engine): Error: no engine supports this");
}

/* Another direction and another shape are not affected. */
static void a_failure_is_of_one_shape_and_direction(void **state) {
	(void)state;
	struct scene s;
	struct logged l;
	struct attention_shape other = usual;
	other.t = 40;
	stand_in_reset(V9_19);
	scene_open(&s, EMU_EAGER);
	stand_in.fails = STAND_IN_EXECUTE;
	stand_in.fails_after = 1;
	log_begin(&l);
	attend(&s, usual); /* backward fails */
	log_end(&l);
	expect_line(&l, "attention backward", "STATUS_EXECUTION_FAILED");
	stand_in.fails = STAND_IN_WORKS;
	attend(&s, usual);
	assert_int_equal(stand_in.executions, 2); /* forward alone */
	attend(&s, other);
	assert_int_equal(stand_in.executions, 4);
	scene_close(&s);
}

/* ---- wrong numbers ---- */

static void check_wrong(int64_t tensor, int64_t from, float by, const char *direction, const char *words) {
	struct scene s;
	struct logged l;
	stand_in_reset(V9_19);
	stand_in.spoiled = tensor;
	stand_in.spoiled_from = from;
	stand_in.spoiled_by = by;
	scene_open(&s, EMU_LAZY);
	log_begin(&l);
	attend(&s, usual);
	int before = stand_in.executions;
	attend(&s, usual);
	log_end(&l);
	expect_line(&l, direction, words);
	assert_int_equal(stand_in.executions, before + 1); /* the direction that is right */
	scene_close(&s);
}

static void wrong_results_are_found_and_replaced(void **state) {
	(void)state;
	check_wrong(SDPA_OUT, 0, 1.3f, "forward", "out is off by");
	check_wrong(SDPA_OUT, usual.t - 1, -1, "forward", "out is off by");
	check_wrong(SDPA_OUT, usual.t - 1, NAN, "forward",
				"out is off by nan of its rms from our own kernels' (limit 0.0625)");
	check_wrong(SDPA_LSE, 20, 1.01f, "forward", "lse is off by");
	check_wrong(SDPA_DQ, 0, 8, "backward", "dq is off by");
	check_wrong(SDPA_DK, usual.t - 1, 0, "backward", "dk is off by");
	check_wrong(SDPA_DV, 5, INFINITY, "backward", "dv is off by");
	check_wrong(SDPA_DV, 0, 1.2f, "backward", "dv is off by");
}

/* Roundings are far below the limits: a hundredth more or less is not found. */
static void small_differences_are_roundings(void **state) {
	(void)state;
	struct logged l;
	struct scene s;
	stand_in_reset(V9_19);
	stand_in.spoiled = SDPA_DK;
	stand_in.spoiled_by = 1.01f;
	scene_open(&s, EMU_EAGER);
	log_begin(&l);
	arrays_of(&s, usual);
	forward(&s, on(&s, s.be), usual);
	backward(&s, on(&s, s.be), usual);
	log_end(&l);
	assert_int_equal(l.lines, 0);
	scene_close(&s);
}

/* NaN in the inputs says nothing about cuDNN: the next call is compared. */
static void unusable_inputs_prove_nothing(void **state) {
	(void)state;
	struct scene s;
	struct logged l;
	stand_in_reset(V9_19);
	scene_open(&s, EMU_EAGER);
	log_begin(&l);
	arrays_of(&s, usual);
	const struct duo_side side = on(&s, s.be);
	uint16_t nan = 0x7fff;
	s.be->ops->upload(s.be, duo_act(side, s.qkv), &nan, sizeof nan);
	forward(&s, side, usual);
	stand_in.spoiled = SDPA_OUT;
	stand_in.spoiled_by = 2;
	attend(&s, usual);
	log_end(&l);
	expect_line(&l, "forward", "out is off by");
	scene_close(&s);
}

/* Zero gradients, as a projection that starts at zero makes them, agree. */
static void zeros_agree(void **state) {
	(void)state;
	struct scene s;
	struct logged l;
	stand_in_reset(V9_19);
	scene_open(&s, EMU_EAGER);
	log_begin(&l);
	arrays_of(&s, usual);
	const struct duo_side side = on(&s, s.be);
	size_t bytes = (size_t)usual.b * usual.t * usual.heads * usual.head_dim * sizeof(uint16_t);
	s.be->ops->zero(s.be, duo_act(side, s.dout), bytes);
	forward(&s, side, usual);
	backward(&s, side, usual);
	backward(&s, side, usual);
	log_end(&l);
	assert_int_equal(l.lines, 0);
	assert_int_equal(stand_in.executions, 3);
	scene_close(&s);
}

/* ---- memory ---- */

static void the_comparison_keeps_no_memory(void **state) {
	(void)state;
	struct scene s;
	size_t before = emu_count().device_bytes;
	stand_in_reset(V9_19);
	scene_open(&s, EMU_EAGER);
	attend(&s, usual);
	size_t once = emu_count().device_bytes;
	attend(&s, usual);
	assert_int_equal(emu_count().device_bytes, once);
	scene_close(&s);
	assert_int_equal(emu_count().device_bytes, before);
}

/* On a device that is full the memory of cuDNN's sums, which is there already, serves the
 * comparison. */
static void the_comparison_borrows_memory(void **state) {
	(void)state;
	struct scene s;
	struct logged l;
	struct attention_shape smaller = usual;
	smaller.t = 17;
	stand_in_reset(V9_19);
	scene_open(&s, EMU_LAZY);
	log_begin(&l);
	attend(&s, usual);
	arrays_of(&s, smaller);
	emu_limit_memory(emu_count().device_bytes);
	forward(&s, on(&s, s.ref), smaller);
	forward(&s, on(&s, s.be), smaller);
	emu_limit_memory(EMU_MEMORY_BYTES);
	check_forward(&s);
	log_end(&l);
	assert_int_equal(l.lines, 0);
	assert_int_equal(stand_in.executions, 3);
	scene_close(&s);
}

/* A device that is full: for the plan's memory, then for the comparison's. */
static void a_full_device_is_no_fault(void **state) {
	(void)state;
	static const char *const words[] = {"no memory for 1024 bytes of workspace", "to compare it with our own kernels"};
	for (int i = 0; i < 2; i++) {
		struct scene s;
		struct logged l;
		stand_in_reset(V9_19);
		scene_open(&s, EMU_EAGER);
		arrays_of(&s, usual);
		emu_limit_memory(emu_count().device_bytes + (i ? 1024 : 0));
		log_begin(&l);
		forward(&s, on(&s, s.ref), usual);
		forward(&s, on(&s, s.be), usual);
		log_end(&l);
		emu_limit_memory(EMU_MEMORY_BYTES);
		check_forward(&s);
		expect_line(&l, "forward", words[i]);
		scene_close(&s);
	}
}

/* A plan that gets no memory takes none from the plans before it. */
static void a_refused_plan_leaves_the_others(void **state) {
	(void)state;
	enum { MIB = 1 << 20 };
	struct scene s;
	struct logged l;
	struct attention_shape longer = usual;
	longer.t = 48;
	stand_in_reset(V9_19);
	const int64_t usual_bytes = stand_in.workspace_bytes;
	scene_open(&s, EMU_EAGER);
	log_begin(&l);
	attend(&s, usual);
	arrays_of(&s, longer);
	stand_in.workspace_bytes = 2 * MIB;
	emu_limit_memory(emu_count().device_bytes + MIB);
	forward(&s, on(&s, s.ref), longer);
	forward(&s, on(&s, s.be), longer);
	emu_limit_memory(EMU_MEMORY_BYTES);
	stand_in.workspace_bytes = usual_bytes;
	check_forward(&s);
	attend(&s, usual);
	log_end(&l);
	expect_line(&l, "forward", "no memory for 2097152 bytes of workspace");
	assert_int_equal(stand_in.executions, 4);
	scene_close(&s);
}

/* ---- CUDA graphs ---- */

struct pass {
	struct scene *s;
	struct attention_shape shape;
};

static void run_pass(void *ctx) {
	const struct pass *p = ctx;
	const struct duo_side side = on(p->s, p->s->be);
	forward(p->s, side, p->shape);
	backward(p->s, side, p->shape);
}

static void micro_step(struct scene *s, struct pass *p) {
	static const int32_t tokens[2];
	float *params = duo_f32(on(s, s->be), s->lse); /* any memory */
	const struct micro_batch batch = {.tokens = tokens,
									  .targets = tokens,
									  .b = 1,
									  .t = 2,
									  .grad_scale = 1,
									  .owner = s,
									  .params = params,
									  .grads = params,
									  .only_enqueues = true};
	s->be->ops->micro_step(s->be, &batch, run_pass, p);
}

/* What the pass computed is attention, of inputs that changed since it was captured. */
static void check_pass(struct scene *s, struct pass *p) {
	const struct duo_side ref = on(s, s->ref);
	forward(s, ref, p->shape);
	backward(s, ref, p->shape);
	check_forward(s);
	check_backward(s);
}

/* The first pass makes plans, whose memory is part of a graph's key; the second one runs plainly
 * under the new key; the third one is captured. */
static void a_graph_repeats_what_was_proven(void **state) {
	(void)state;
	struct scene s;
	struct logged l;
	stand_in_reset(V9_19);
	scene_open(&s, EMU_LAZY);
	arrays_of(&s, usual);
	struct pass p = {&s, usual};
	uint64_t graphs = emu_count().graph_launches;
	log_begin(&l);
	for (int i = 0; i < 5; i++) {
		micro_step(&s, &p);
		check_pass(&s, &p);
	}
	log_end(&l);
	assert_int_equal(l.lines, 0);
	assert_int_equal(emu_count().graph_launches - graphs, 3);
	assert_int_equal(stand_in.executions, 6); /* four plain ones, two captured */
	scene_close(&s);
}

/* A failure inside a capture: the graph has our own kernels, and is captured anew. */
static void a_failure_in_a_capture_falls_back(void **state) {
	(void)state;
	struct scene s;
	struct logged l;
	stand_in_reset(V9_19);
	stand_in.fails = STAND_IN_EXECUTE;
	stand_in.fails_after = 4;
	scene_open(&s, EMU_LAZY);
	arrays_of(&s, usual);
	struct pass p = {&s, usual};
	uint64_t graphs = emu_count().graph_launches;
	log_begin(&l);
	for (int i = 0; i < 6; i++) {
		micro_step(&s, &p);
		check_pass(&s, &p);
	}
	log_end(&l);
	assert_int_equal(stand_in.executions, 4);
	assert_int_equal(stand_in.failures, 2); /* one in each direction */
	assert_int_equal(l.lines, 2);
	assert_true(emu_count().graph_launches - graphs >= 2);
	scene_close(&s);
}

/* What is met in a capture for the first time is neither planned nor compared there: our own
 * kernels are captured. */
static void nothing_is_proven_in_a_capture(void **state) {
	(void)state;
	struct scene s;
	struct logged l;
	stand_in_reset(V9_19);
	scene_open(&s, EMU_LAZY);
	arrays_of(&s, usual);
	struct pass p = {&s, usual};
	uint64_t graphs = emu_count().graph_launches;
	p.shape.head_dim = 20; /* our own kernels': they have their scratch now */
	log_begin(&l);
	micro_step(&s, &p); /* scratch grows, which drops graphs */
	micro_step(&s, &p);
	p.shape = usual;
	micro_step(&s, &p);
	log_end(&l);
	check_pass(&s, &p);
	if (emu_count().graph_launches - graphs != 1)
		fail_msg("no graph: %s", l.text);
	assert_int_equal(stand_in.plans, 0);
	assert_int_equal(stand_in.executions, 0);
	scene_close(&s);
}

#define TEST(function) cmocka_unit_test_teardown(function, log_after)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(graphs_compute_attention),
		TEST(documented_faults_are_avoided),
		TEST(a_single_token_is_not_asked),
		TEST(odd_head_sizes_are_not_asked),
		TEST(addresses_are_checked),
		TEST(sums_are_zeroed_where_a_version_needs_it),
		TEST(variables_leave_it_out),
		TEST(a_missing_library_is_no_fault),
		TEST(failures_fall_back_for_good),
		TEST(a_failure_is_of_one_shape_and_direction),
		TEST(wrong_results_are_found_and_replaced),
		TEST(small_differences_are_roundings),
		TEST(unusable_inputs_prove_nothing),
		TEST(zeros_agree),
		TEST(the_comparison_keeps_no_memory),
		TEST(the_comparison_borrows_memory),
		TEST(a_full_device_is_no_fault),
		TEST(a_refused_plan_leaves_the_others),
		TEST(a_graph_repeats_what_was_proven),
		TEST(a_failure_in_a_capture_falls_back),
		TEST(nothing_is_proven_in_a_capture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
