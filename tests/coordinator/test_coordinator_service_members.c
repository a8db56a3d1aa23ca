/* Members that are unlike the others, or whose disks fail: named, once, and shown. */
#include <stdlib.h>
#include <string.h>

#include "outer/codec.h"
#include "tests/common/check.h"
#include "tests/coordinator/service_bench.h"

static json_t *storage_of(struct service_bench *b, json_t **status) {
	*status = service_status(b->service, b->now_us, false);
	return json_object_get(json_array_get(json_object_get(*status, "members"), 0), "storage");
}

static bool stores_everything(struct service_bench *b) {
	json_t *status, *storage = storage_of(b, &status);
	bool is_null = json_is_null(storage);
	json_decref(status);
	return is_null;
}

static bool metrics_say(struct service_bench *b, const char *line) {
	char *text = service_metrics(b->service, b->now_us);
	bool said = strstr(text, line) != NULL;
	free(text);
	return said;
}

/* A worker whose disk is full: the operator sees it, and that it is over. */
static void test_a_disk_that_takes_nothing(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	json_t *status;
	b->nameless = true;
	assert_int_equal(bench_join(b, 1, &reply), RV_OK);
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	assert_true(stores_everything(b));
	assert_true(metrics_say(b, "\nrivulet_member_storage_failing{member=\"0\"} 0\n"));
	b->storage = REPORT_STORAGE_ROUNDS | REPORT_STORAGE_CHECKPOINTS | REPORT_STORAGE_FULL;
	assert_int_equal(bench_report(b, 1, WORKER_LEAVING, ":70"), RV_OK);
	json_t *storage = storage_of(b, &status);
	assert_string_equal(json_string_value(json_object_get(storage, "fails")), "results of rounds, checkpoints");
	assert_true(json_is_true(json_object_get(storage, "full")));
	json_decref(status);
	assert_true(metrics_say(b, "\nrivulet_member_storage_failing{member=\"0\"} 1\n"));
	assert_true(metrics_say(b, "\nrivulet_member_storage_full{member=\"0\"} 1\n"));
	assert_true(bench_was_told(
		b, "member 0 cannot store results of rounds, checkpoints (its disk is full): it takes part in no round"));
	assert_true(bench_was_told(b, "member 0 is not waited for until its disk takes results again"));
	assert_false(bench_was_told(b, "has left"));
	uint8_t failing = b->storage;
	for (int flips = 0; flips < 3; flips++) { /* nearly full: shown as it is, told once */
		b->now_us += 5000000;
		b->storage = flips % 2 ? failing : 0;
		assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
		assert_int_equal(stores_everything(b), flips % 2 == 0);
	}
	for (int i = 0; i < 5; i++) {
		b->now_us += 5000000;
		assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	}
	assert_false(bench_was_told(b, "stores everything again"));
	b->now_us += 5000000;
	assert_int_equal(bench_report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	assert_true(bench_was_told(b, "member 0 stores everything again"));
}

/* Of four members the last one has other text, is far too large and points away; all owners but it
 * say so. */
static void one_is_unlike_the_others(struct report *rep, uint8_t who) {
	rep->loss = who == 4 ? 5.5f : 1.5f + 0.01f * (float)who;
	if (rep->phase != WORKER_VOTED)
		return;
	rep->n_measured = 4;
	rep->mean2 = 1;
	for (int i = 0; i < 4; i++)
		rep->measured[i] = (struct report_measured){.norm2 = 1, .dot = 0.5f};
	if (who == 4)
		rep->measured[0].norm2 = 3e38f; /* a lie */
	else
		rep->measured[3] = (struct report_measured){.norm2 = 16, .dot = -2, .clipped = rep->n_chunks};
}

static void round_of_four(struct service_bench *b) {
	static const enum worker_phase phases[] = {WORKER_TRAINING, WORKER_READY, WORKER_VOTED};
	for (size_t p = 0; p < sizeof phases / sizeof phases[0]; p++)
		for (uint8_t who = 1; who <= 4; who++)
			assert_int_equal(bench_report(b, who, phases[p], ":70"), RV_OK);
}

static json_t *member_of(json_t *status, size_t member) {
	return json_array_get(json_object_get(status, "members"), member);
}

static void test_a_member_unlike_the_others_is_named(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	b->alter = one_is_unlike_the_others;
	for (uint8_t who = 1; who <= 4; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (int round = 0; round < 3; round++) {
		json_t *o = service_status(b->service, b->now_us, false);
		assert_int_equal(json_array_size(json_object_get(member_of(o, 3), "outlier")), 0); /* one round may be luck */
		json_decref(o);
		round_of_four(b);
	}
	json_t *o = service_status(b->service, b->now_us, false), *odd = member_of(o, 3), *usual = member_of(o, 0);
	assert_int_equal(json_array_size(json_object_get(odd, "outlier")), 3);
	assert_int_equal(json_array_size(json_object_get(usual, "outlier")), 0);
	const json_t *c = json_object_get(odd, "contribution");
	assert_true(json_real_value(json_object_get(c, "norm")) == 4);
	assert_true(json_real_value(json_object_get(c, "cosine")) == -0.5);
	assert_true(json_real_value(json_object_get(json_object_get(usual, "contribution"), "norm")) == 1);
	assert_true(json_real_value(json_object_get(o, "loss")) < 1.6); /* of 1.51, 1.52, 1.53 and 5.5 */
	char *text = json_dumps(json_object_get(o, "events"), 0), *metrics = service_metrics(b->service, b->now_us);
	assert_non_null(strstr(text, "member 3: its loss is far from the others': 5.5, median 1.52"));
	assert_non_null(strstr(text, "member 3: its contribution is scaled down: 4 median norms"));
	assert_non_null(strstr(text, "member 3: its contribution points elsewhere: cosine -0.50"));
	assert_null(strstr(text, "member 0: its"));
	assert_non_null(strstr(metrics, "rivulet_member_contribution_norm_ratio{member=\"3\"} 4\n"));
	assert_non_null(strstr(metrics, "rivulet_member_contribution_cosine{member=\"3\"} -0.5\n"));
	assert_non_null(strstr(metrics, "rivulet_member_outlier{member=\"3\",kind=\"loss\"} 1\n"));
	assert_non_null(strstr(metrics, "rivulet_member_outlier{member=\"0\",kind=\"loss\"} 0\n"));
	free(metrics);
	free(text);
	json_decref(o);
}

/* Of four members the last one has a slow uplink: it sends a sparse contribution, whose cosine is
 * half of the others', and one of eight in the end. */
static float sparse_dot;
static void one_is_sparse(struct report *rep, uint8_t who) {
	rep->up_bytes_per_s = who == 4 ? 10000 : 10000000;
	rep->down_bytes_per_s = 10000000;
	if (rep->commitment.n > 0) /* to both encodings of its contribution */
		rep->commitment.roots[rep->commitment.n++].codec = codec_topk64.id;
	if (rep->phase != WORKER_VOTED)
		return;
	rep->n_measured = 4;
	rep->mean2 = 1;
	for (int i = 0; i < 4; i++)
		rep->measured[i] = (struct report_measured){.norm2 = 1, .dot = i == 3 ? sparse_dot : 0.7f};
}

static size_t oddities(struct service_bench *b, size_t member) {
	json_t *o = service_status(b->service, b->now_us, false);
	const size_t n = json_array_size(json_object_get(member_of(o, member), "outlier"));
	json_decref(o);
	return n;
}

static void test_a_sparse_contribution_is_judged_as_one(void **state) {
	struct service_bench *b = *state;
	struct join_reply reply;
	b->alter = one_is_sparse;
	sparse_dot = 0.7f;
	for (uint8_t who = 1; who <= 4; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (int round = 0; round < 3; round++)
		round_of_four(b);
	sparse_dot = 0.35f;
	for (int round = 0; round < 4; round++) {
		round_of_four(b);
		assert_int_equal(oddities(b, 3), 0);
	}
	sparse_dot = 0.05f;
	for (int round = 0; round < 3; round++)
		round_of_four(b);
	assert_int_equal(oddities(b, 3), 1);
	assert_int_equal(oddities(b, 0), 0);
	assert_true(bench_was_told(b, "member 3: its contribution points elsewhere"));
}

/* Twelve members in rows of four. The last one is as above, by its row; in the middle row all
 * contributions are three times as large. */
static void one_row_is_large(struct report *rep, uint8_t who) {
	rep->loss = 1.5f;
	if (rep->phase != WORKER_VOTED)
		return;
	rep->n_measured = 4;
	rep->mean2 = 1;
	const bool large = (who - 1) / 4 == 1;
	for (int i = 0; i < 4; i++)
		rep->measured[i] = (struct report_measured){.norm2 = large ? 9 : 1, .dot = large ? 1.5f : 0.5f};
	if ((who - 1) / 4 == 2)
		rep->measured[3] = (struct report_measured){.norm2 = 16, .dot = -2, .clipped = rep->n_chunks};
}

static double norm_of(json_t *status, size_t member) {
	return json_real_value(json_object_get(json_object_get(member_of(status, member), "contribution"), "norm"));
}

static void test_rows_are_judged_together(void **state) {
	static const enum worker_phase phases[] = {WORKER_TRAINING, WORKER_READY, WORKER_VOTED};
	struct service_bench *b = *state;
	struct join_reply reply;
	b->alter = one_row_is_large;
	for (uint8_t who = 1; who <= 12; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (int round = 0; round < 3; round++)
		for (size_t p = 0; p < sizeof phases / sizeof phases[0]; p++)
			for (uint8_t who = 1; who <= 12; who++) {
				json_t *o =
					phases[p] == WORKER_VOTED && who == 12 ? service_status(b->service, b->now_us, false) : NULL;
				for (size_t i = 0; o != NULL && i < 12; i++) {
					assert_true(json_is_true(json_object_get(member_of(o, i), "participant")));
					assert_int_equal(json_integer_value(json_object_get(member_of(o, i), "row")), i / 4);
				}
				json_decref(o);
				assert_int_equal(bench_report(b, who, phases[p], ":70"), RV_OK);
			}
	json_t *o = service_status(b->service, b->now_us, false);
	for (size_t i = 0; i < 12; i++) {
		assert_int_equal(json_array_size(json_object_get(member_of(o, i), "outlier")), i == 11 ? 2 : 0);
		assert_float_equal(norm_of(o, i), i == 11 ? 4 : i / 4 == 1 ? 3 : 1, 1e-9);
	}
	json_decref(o);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_disk_that_takes_nothing, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_member_unlike_the_others_is_named, bench_set_up, bench_tear_down),
		cmocka_unit_test_setup_teardown(test_a_sparse_contribution_is_judged_as_one, bench_set_up_coarser,
										bench_tear_down),
		cmocka_unit_test_setup_teardown(test_rows_are_judged_together, bench_set_up_rows, bench_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
