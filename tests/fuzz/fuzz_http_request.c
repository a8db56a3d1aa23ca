/* fuzz_http_request.c: a head that anybody may send to `rivulet data serve`. What is accepted names
 * a published file and nothing else, and its range lies within the file. */
#include "lab/data/http_request.h"
#include "tests/fuzz/fuzz.h"
#include "train/text/published/file_names.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const char *bytes = (const char *)data;
	const size_t length = http_head_length(bytes, size);
	RV_ASSERT(length <= size);
	const struct http_request_head q = http_request_of(bytes, length);
	if (q.fault != HTTP_OK)
		return 0;
	RV_ASSERT(memchr(q.name, '\0', sizeof q.name) && file_name_is_published(q.name));
	RV_ASSERT(!strchr(q.name, '/') && q.name[0] != '.');
	static const uint64_t sizes[] = {0, 1, 1000, UINT64_MAX / 2};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		uint64_t first, n;
		enum http_status status = http_range_cut(&q.range, sizes[i], &first, &n);
		RV_ASSERT(status == HTTP_NOT_SATISFIABLE || (first <= sizes[i] && n <= sizes[i] - first));
		RV_ASSERT(status != HTTP_PARTIAL || n > 0);
	}
	return 0;
}
