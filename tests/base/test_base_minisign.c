/* Keys and signatures of minisign: those of Debian's minisign 0.11 are read, ours are as it writes
 * them, and every change of a byte is found. tests/package/minisign.sh has the two programs check
 * each other's. */
#include "base/minisign.h"

#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

/* Made by minisign -G -W, -G and -S over the nine bytes below. */
static const char theirs_public[] = "untrusted comment: minisign public key 8229AC62C4502E19\n"
									"RWQZLlDEYqwpgmOyM/R6c/fxfY57IIdXLbgDgLNKRiYE+e0AeBEi2OBx\n";
static const char theirs_secret[] =
	"untrusted comment: minisign encrypted secret key\n"
	"RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAGS5QxGKsKYL9UAGFg4bx9HlnhZ0IUfar7N/"
	"Xj9sNwt/vbCFVxmk6pmOyM/R6c/fxfY57IIdXLbgDgLNKRiYE+e0AeBEi2OBxAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
static const char with_password[] =
	"untrusted comment: minisign encrypted secret key\n"
	"RWRTY0IyBKj9j/yLfEFKknTfYU48j4au+mJQiguvmWYfIJLW4QAAAAACAAAAAAAAAEAAAAAAsU0TL+JiOnHPVhOa2Fu4247r/q9CpmpkvfY/"
	"BNDCMeQK0xMLZT/QhbFalXtSqoKJgU7OFFpjmfLaOLb4mQckV+YttOFRM/kzrEo7waZBebMdjEvkRePTeoYDLEzy3ex6ueGFWJUK3XU=\n";
static const char theirs_signature[] =
	"untrusted comment: signature from minisign secret key\n"
	"RUQZLlDEYqwpgusOYO3weZU7/EJ4H36Dlm0NYCNJPTcZukDBgdoVnK6wvt/GnUW6Od9v6FBTA0p8ErO/mbMkAeAieZZvaOyETAY=\n"
	"trusted comment: rivulet 0.2.0+0123456789ab\n"
	"1ux3HXhZ8yXCx8rrfg2PXvJ0cbyZQTJaQz/0pQtUKZpKfrZ6RwYoK5FSwPUJho0dkuIZlE77NWEwQ/uoxgNUAw==\n";
static const char legacy[] =
	"untrusted comment: signature from minisign secret key\n"
	"RWQZLlDEYqwpguzUaOiEKHbNeeZCFMgpwgZSfIekhw3Fdc17iDJAH+RXyeiTivcYyVOHq+8FHLy0q9U6aRT+eukp/zU0aor7Igc=\n"
	"trusted comment: legacy\n"
	"XfzRecOksxf43MJBLjy4LEo5KRNAUmHA3KRbeSjKT+pwSL/pTr4fj475u5XlMYwDMBnfLHUihmkVYi9AFAMfDg==\n";
static const char file[] = "six bytes";
enum { FILE_BYTES = sizeof file - 1 };
static const char said[] = "rivulet 0.2.0+0123456789ab";

static struct rv_minisign_public theirs(void) {
	struct rv_minisign_public k;
	assert_int_equal(rv_minisign_read_public(theirs_public, &k, NULL), RV_OK);
	return k;
}

static void what_minisign_made_is_read(void **state) {
	(void)state;
	const struct rv_minisign_public k = theirs();
	struct rv_minisign_public alone;
	struct rv_minisign_secret secret;
	char comment[RV_MINISIGN_COMMENT_BYTES], id[17], text[RV_MINISIGN_TEXT_BYTES];
	assert_int_equal(rv_minisign_verify(&k, file, FILE_BYTES, theirs_signature, comment, NULL), RV_OK);
	assert_string_equal(comment, said);
	rv_minisign_print_id(&k, id);
	assert_non_null(strstr(theirs_public, id));
	assert_int_equal(rv_minisign_read_public(strchr(theirs_public, '\n') + 1, &alone, NULL), RV_OK);
	assert_memory_equal(&alone, &k, sizeof k);
	assert_int_equal(rv_minisign_read_secret(theirs_secret, &secret, NULL), RV_OK);
	assert_memory_equal(&secret.public, &k, sizeof k);
	rv_minisign_sign(&secret, file, FILE_BYTES, said, text);
	/* Ed25519 has one signature: but for the first comment the texts are alike. */
	assert_string_equal(strchr(text, '\n'), strchr(theirs_signature, '\n'));
}

static void keys_of_our_own_go_round(void **state) {
	(void)state;
	struct rv_minisign_secret made, read;
	struct rv_minisign_public public;
	char text[RV_MINISIGN_TEXT_BYTES], comment[RV_MINISIGN_COMMENT_BYTES];
	assert_int_equal(rv_minisign_new(&made, NULL), RV_OK);
	rv_minisign_print_secret(&made, text);
	assert_int_equal(rv_minisign_read_secret(text, &read, NULL), RV_OK);
	assert_memory_equal(&read, &made, sizeof made);
	rv_minisign_print_public(&made.public, text);
	assert_int_equal(rv_minisign_read_public(text, &public, NULL), RV_OK);
	assert_memory_equal(&public, &made.public, sizeof public);
	rv_minisign_sign(&made, "", 0, "", text);
	assert_int_equal(rv_minisign_verify(&public, "", 0, text, comment, NULL), RV_OK);
	assert_string_equal(comment, "");
}

static void every_change_is_found(void **state) {
	(void)state;
	const struct rv_minisign_public k = theirs();
	char comment[RV_MINISIGN_COMMENT_BYTES], text[RV_MINISIGN_TEXT_BYTES], bytes[FILE_BYTES];
	const size_t first = strcspn(theirs_signature, "\n");
	for (size_t i = first + 1; i < strlen(theirs_signature) - 1; i++) {
		memcpy(text, theirs_signature, sizeof theirs_signature);
		text[i] = text[i] == 'A' ? 'B' : 'A';
		assert_int_not_equal(rv_minisign_verify(&k, file, FILE_BYTES, text, comment, NULL), RV_OK);
	}
	for (size_t n = 0; n < strlen(theirs_signature) - 1; n++) {
		memcpy(text, theirs_signature, n);
		text[n] = '\0';
		assert_int_equal(rv_minisign_verify(&k, file, FILE_BYTES, text, comment, NULL), RV_E_INVALID);
	}
	for (size_t i = 0; i < FILE_BYTES; i++) {
		memcpy(bytes, file, FILE_BYTES);
		bytes[i] ^= 1;
		assert_int_equal(rv_minisign_verify(&k, bytes, FILE_BYTES, theirs_signature, comment, NULL), RV_E_AUTH);
	}
	assert_int_equal(rv_minisign_verify(&k, file, FILE_BYTES - 1, theirs_signature, comment, NULL), RV_E_AUTH);
}

static void what_is_refused_says_why(void **state) {
	(void)state;
	const struct rv_minisign_public k = theirs();
	struct rv_minisign_secret other;
	struct rv_errtext et;
	char comment[RV_MINISIGN_COMMENT_BYTES], text[RV_MINISIGN_TEXT_BYTES];
	assert_int_equal(rv_minisign_verify(&k, file, FILE_BYTES, legacy, comment, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "present format"));
	assert_int_equal(rv_minisign_new(&other, NULL), RV_OK);
	rv_minisign_sign(&other, file, FILE_BYTES, said, text);
	assert_int_equal(rv_minisign_verify(&k, file, FILE_BYTES, text, comment, &et), RV_E_AUTH);
	assert_non_null(strstr(et.text, "signed by the key "));
	assert_int_equal(rv_minisign_read_secret(with_password, &other, &et), RV_E_UNSUPPORTED);
	assert_int_equal(rv_minisign_read_secret(theirs_public, &other, &et), RV_E_INVALID);
	assert_int_equal(rv_minisign_read_public(theirs_secret, &other.public, &et), RV_E_INVALID);
	assert_int_equal(rv_minisign_read_public("", &other.public, &et), RV_E_INVALID);
	memcpy(text, theirs_secret, sizeof theirs_secret);
	char *damaged = strchr(text, '\n') + 120;
	*damaged = *damaged == 'A' ? 'B' : 'A';
	assert_int_equal(rv_minisign_read_secret(text, &other, &et), RV_E_CORRUPT);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_minisign_made_is_read),
		cmocka_unit_test(keys_of_our_own_go_round),
		cmocka_unit_test(every_change_is_found),
		cmocka_unit_test(what_is_refused_says_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
