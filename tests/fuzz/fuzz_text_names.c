/* fuzz_text_names.c: what strangers write about text: URLs of mirrors in a manifest, the
 * Content-Range of an answer; and names that lie in a cache directory. */
#include "tests/fuzz/fuzz.h"
#include "worker/text/text_file.h"
#include "worker/text/text_mirror.h"

#include <stdlib.h>
#include <string.h>

static void mirror(const char *text, const char *endpoint) {
	static struct text_keys keys = {.region = "eu-1", .id = "id", .secret = "secret"};
	struct text_mirror m;
	(void)strcpy(keys.endpoint, endpoint);
	if (text_mirror_parse(text, &keys, &m, NULL) != RV_OK)
		return;
	const size_t n = strlen(m.url);
	RV_ASSERT(strncmp(m.url, "http://", 7) == 0 || strncmp(m.url, "https://", 8) == 0);
	RV_ASSERT(n < sizeof m.url && !strpbrk(m.url, "?# \r\n\t"));
	/* Keys go to the store that the owner named, and nowhere else. */
	RV_ASSERT(!m.is_signed || (endpoint[0] && strncmp(m.url, endpoint, strlen(endpoint)) == 0));
	RV_ASSERT(!m.is_signed || m.url[strlen(endpoint)] == '/');
	RV_ASSERT(m.is_own == (m.is_store && endpoint[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char *text = malloc(size + 1);
	uint64_t first, last, total, shard;
	bool is_part;
	RV_ASSERT(text);
	memcpy(text, data, size);
	text[size] = '\0';
	mirror(text, "");
	mirror(text, "http://10.0.0.1:9000");
	if (text_content_range(text, &first, &last, &total))
		RV_ASSERT(first <= last && last < total);
	if (text_file_parse_shard(text, &shard, &is_part)) {
		char name[32];
		manifest_shard_name(shard, name);
		RV_ASSERT(shard < MANIFEST_MAX_SHARDS && strncmp(text, name, strlen(name)) == 0);
		RV_ASSERT(strcmp(text + strlen(name), is_part ? ".part" : "") == 0);
	}
	free(text);
	return 0;
}
