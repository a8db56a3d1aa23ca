/* terms.h: what a person reads before their computer joins, and what is kept of their answer. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "worker/join/terms.h"

#include <string.h>
#include <sys/stat.h>

static const struct run_about about = {.name = "Perl in prose",
									   .purpose = "A model that explains Perl.",
									   .operator_name = "Ada, ada@example.org",
									   .text_license = "CC0-1.0",
									   .text_hosts = "texts.example.org, s3://texts",
									   .round_s = 20};
static const struct terms_needs needs = {.parameters = 124000000,
										 .rounds = 500,
										 .tokens_per_round = 61440,
										 .memory_bytes = 2600000000,
										 .state_disk_bytes = 3000000000,
										 .text_bytes = 20000000000,
										 .state_bytes = 1000000000,
										 .round_bytes = 250000000,
										 .computes = "the processor (2 cores)",
										 .coordinator = "run.example.org:7433"};

static void test_it_says_what_is_asked_for(void **state) {
	(void)state;
	static const char *const wanted[] = {
		"Perl in prose",
		"A model that explains Perl.",
		"Ada, ada@example.org; coordinator run.example.org:7433",
		"license: CC0-1.0",
		"license of the result: not stated by the operator",
		"from the coordinator and other members, and from texts.example.org, s3://texts",
		"those hosts: its IP address",
		"124 M parameters",
		"the processor (2 cores)",
		"61.4 k tokens a round, 500 rounds",
		"a round took 20 s",
		"2.60 GB",
		"3.00 GB at least, and up to 20.0 GB of the run's text",
		"1.00 GB to begin with, then about 250 MB up",
		"100 Mbit/s each way",
		"IP address",
		"You can stop at any time"};
	char text[TERMS_BYTES];
	terms_text(&about, &needs, text);
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		if (!strstr(text, wanted[i]))
			fail_msg("\"%s\" is not in:\n%s", wanted[i], text);
	assert_null(strstr(text, "moments"));
	struct run_about nothing = {.round_s = 0};
	struct terms_needs repeated = needs;
	repeated.shows_moments = true;
	terms_text(&about, &repeated, text);
	assert_non_null(strstr(text, "may have the moments of its optimizer"));
	terms_text(&nothing, &needs, text);
	assert_non_null(strstr(text, "purpose:    not stated by the operator"));
	assert_non_null(strstr(text, "not known yet"));
	assert_null(strstr(text, "those hosts"));
}

/* A person sees what of the disk is the text, as far as the coordinator states it. */
static void test_the_disk_holds_the_text_too(void **state) {
	(void)state;
	struct terms_needs n = needs;
	char text[TERMS_BYTES];
	n.text_least_bytes = 500000000;
	terms_text(&about, &n, text);
	assert_non_null(strstr(text, "3.50 GB at least, of these 500 MB of the run's text, and up to 20.0 GB of that"));
	n.text_bytes = n.text_least_bytes; /* all of a short text */
	terms_text(&about, &n, text);
	assert_non_null(strstr(text, "3.50 GB at least, of these 500 MB of the run's text\n"));
	n.text_bytes = n.text_least_bytes = 0;
	terms_text(&about, &n, text);
	assert_non_null(strstr(text, "3.00 GB at least\n"));
}

/* The longest texts fit. */
static void test_it_is_bounded(void **state) {
	(void)state;
	struct run_about a = {.round_s = 1};
	char text[TERMS_BYTES];
	memset(a.name, 'n', sizeof a.name - 1);
	memset(a.purpose, 'p', sizeof a.purpose - 1);
	memset(a.operator_name, 'o', sizeof a.operator_name - 1);
	memset(a.text_license, 't', sizeof a.text_license - 1);
	memset(a.model_license, 'm', sizeof a.model_license - 1);
	memset(a.text_hosts, 'h', sizeof a.text_hosts - 1);
	a.text_bytes = a.text_least_bytes = UINT64_C(1) << 60;
	terms_text(&a, &needs, text);
	assert_non_null(strstr(text, "stays in the model.\n"));
}

static void test_another_run_is_asked_for_again(void **state) {
	(void)state;
	char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
	struct run_about kept, other = about;
	struct rv_hash accepted, hash = terms_hash(&about, "rounds = 7\n");
	struct stat st;
	scratch_make(dir, sizeof dir);
	assert_false(terms_read(dir, &kept, &accepted));
	assert_ok(terms_write(dir, &about, &hash, &et));
	assert_true(terms_read(dir, &kept, &accepted));
	assert_true(rv_hash_equal(&accepted, &hash));
	assert_string_equal(kept.purpose, about.purpose);
	(void)snprintf(path, sizeof path, "%s/terms.conf", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	other.round_s = 99; /* of the day, not of the run */
	struct rv_hash same = terms_hash(&other, "rounds = 7\n");
	assert_true(rv_hash_equal(&same, &hash));
	strcpy(other.text_hosts, "elsewhere.example");
	same = terms_hash(&other, "rounds = 7\n");
	assert_false(rv_hash_equal(&same, &hash)); /* people agree to hosts, too */
	strcpy(other.text_hosts, about.text_hosts);
	strcpy(other.model_license, "all rights reserved");
	struct rv_hash another = terms_hash(&other, "rounds = 7\n"), longer = terms_hash(&about, "rounds = 8\n");
	assert_false(rv_hash_equal(&another, &hash));
	assert_false(rv_hash_equal(&longer, &hash));
	scratch_write(dir, "terms.conf", "accepted = 12\n", 14);
	assert_false(terms_read(dir, &kept, &accepted));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_says_what_is_asked_for), cmocka_unit_test(test_the_disk_holds_the_text_too),
		cmocka_unit_test(test_it_is_bounded), cmocka_unit_test(test_another_run_is_asked_for_again)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
