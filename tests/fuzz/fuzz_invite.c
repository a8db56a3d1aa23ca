/* fuzz_invite.c: invite links and addresses, as people paste them. What is accepted formats to a
 * text that parses back to the same. */
#include "base/shown_text.h"
#include "net/invite.h"

#include "net/control/fields.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_invite(const char *text) {
	struct invite a = {0}, b = {0};
	struct rv_errtext et = {0};
	char again[INVITE_MAX_BYTES];
	if (invite_parse(text, &a, &et) != RV_OK) {
		RV_ASSERT(et.text[0]);
		return;
	}
	invite_format(&a, again);
	RV_ASSERT(invite_parse(again, &b, NULL) == RV_OK);
	RV_ASSERT(strcmp(a.coordinator.host, b.coordinator.host) == 0 && a.coordinator.port == b.coordinator.port);
	RV_ASSERT(memcmp(a.run_id, b.run_id, sizeof a.run_id) == 0 && memcmp(a.key, b.key, sizeof a.key) == 0);
	RV_ASSERT(a.has_token == b.has_token && (!a.has_token || memcmp(a.token, b.token, sizeof a.token) == 0));
}

static void check_address(const char *text) {
	struct address a, b;
	struct sockaddr_storage socket_address;
	socklen_t n;
	char again[NET_ADDR_BYTES];
	(void)control_check_addr(text, NULL);
	if (address_parse(text, &a, NULL) != RV_OK)
		return;
	(void)address_to_socket(&a, &socket_address, &n);
	if (!address_format(&a, again))
		return;
	RV_ASSERT(address_parse(again, &b, NULL) == RV_OK);
	RV_ASSERT(strcmp(a.host, b.host) == 0 && a.port == b.port);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char text[1025];
	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	check_invite(text);
	check_address(text);
	(void)rv_utf8_invalid(text);
	return 0;
}
