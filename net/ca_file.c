/* ca_file.c: see ca_file.h. */
#include "net/ca_file.h"

#include <stdlib.h>

CURLcode ca_file_use(CURL *easy) {
	const char *file = getenv("SSL_CERT_FILE");
	return file && file[0] ? curl_easy_setopt(easy, CURLOPT_CAINFO, file) : CURLE_OK;
}
