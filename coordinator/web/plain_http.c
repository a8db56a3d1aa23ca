/* plain_http.c: see plain_http.h. */
#include "coordinator/web/plain_http.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { ANSWER_BYTES = 1024, TEXT_BYTES = 512, REQUEST_BYTES = 4096, REQUEST_PARTS = 4 };

static bool is_http(void) {
	const unsigned long e = ERR_peek_last_error();
	return ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) == SSL_R_HTTP_REQUEST;
}

/* Reads what has arrived of the request: a socket that is closed with unread bytes is reset, and
 * then its client may not see the answer. */
static void skip_request(int fd) {
	char bytes[REQUEST_BYTES];
	for (int i = 0; i < REQUEST_PARTS && recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0; i++)
		continue;
}

void plain_http_answer(const SSL *ssl, const char *place) {
	const int fd = SSL_get_fd(ssl);
	char text[TEXT_BYTES], answer[ANSWER_BYTES];
	if (fd < 0 || !is_http())
		return;
	const int n_text =
		snprintf(text, sizeof text, "This is plain HTTP, and the port speaks HTTPS: https://%s/\n", place);
	const int n = snprintf(answer, sizeof answer,
						   "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
						   "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
						   n_text, text);
	skip_request(fd);
	(void)send(fd, answer, (size_t)n, MSG_DONTWAIT); /* SIGPIPE is ignored */
}
