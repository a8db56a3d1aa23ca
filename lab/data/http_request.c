/* http_request.c: reads what a download needs; several ranges, conditions and other headers are
 * passed over, as RFC 9110 allows. */
#include "lab/data/http_request.h"

#include "train/text/published/file_names.h"

#include <string.h>
#include <strings.h>

/* A piece of the head, not NUL-terminated. */
struct span {
	const char *at;
	size_t n;
};

size_t http_head_length(const char *bytes, size_t n) {
	for (size_t i = 0; i + 4 <= n; i++)
		if (memcmp(bytes + i, "\r\n\r\n", 4) == 0)
			return i + 4;
	return 0;
}

/* Takes the next line, without its end. */
static bool take_line(struct span *rest, struct span *line) {
	const char *end = memchr(rest->at, '\r', rest->n);
	if (!end || (size_t)(end - rest->at) + 2 > rest->n || end[1] != '\n')
		return false;
	*line = (struct span){rest->at, (size_t)(end - rest->at)};
	rest->n -= line->n + 2;
	rest->at = end + 2;
	return true;
}

static bool equals(struct span s, const char *word) {
	return s.n == strlen(word) && memcmp(s.at, word, s.n) == 0;
}

static bool begins(struct span s, const char *word) {
	return s.n >= strlen(word) && strncasecmp(s.at, word, strlen(word)) == 0;
}

/* Takes what is before the next blank. */
static struct span take_word(struct span *line) {
	const char *blank = memchr(line->at, ' ', line->n);
	struct span word = {line->at, blank ? (size_t)(blank - line->at) : line->n};
	size_t used = word.n + (blank != NULL);
	line->at += used;
	line->n -= used;
	return word;
}

/* Takes the name from the target, whose query is passed over. Names need no percent-encoding. */
static bool take_name(struct span target, char name[static HTTP_NAME_BYTES]) {
	const char *query = memchr(target.at, '?', target.n);
	size_t n = query ? (size_t)(query - target.at) : target.n;
	if (n < 2 || n > HTTP_NAME_BYTES || target.at[0] != '/' || memchr(target.at, '\0', n))
		return false;
	memcpy(name, target.at + 1, n - 1);
	name[n - 1] = '\0';
	return file_name_is_published(name);
}

static void take_header(struct span line, struct http_request_head *q, bool *has_condition) {
	const char *colon = memchr(line.at, ':', line.n);
	if (!colon || colon == line.at || memchr(line.at, ' ', (size_t)(colon - line.at)) ||
		memchr(line.at, '\t', (size_t)(colon - line.at))) {
		q->fault = HTTP_BAD_REQUEST; /* RFC 9112 5.1 and 5.2: no blank before the colon, no folded lines */
		return;
	}
	struct span name = {line.at, (size_t)(colon - line.at)}, value = {colon + 1, line.n - name.n - 1};
	while (value.n > 0 && (*value.at == ' ' || *value.at == '\t')) {
		value.at++;
		value.n--;
	}
	while (value.n > 0 && (value.at[value.n - 1] == ' ' || value.at[value.n - 1] == '\t'))
		value.n--;
	if (name.n == 5 && begins(name, "range"))
		q->range = http_range_read(value.at, value.n);
	else if (name.n == 8 && begins(name, "if-range"))
		*has_condition = true; /* no validator was given out: the whole file is sent */
	else if (name.n == 10 && begins(name, "connection") && begins(value, "close"))
		q->keeps_alive = false;
	else if ((name.n == 14 && begins(name, "content-length") && !equals(value, "0")) ||
			 (name.n == 17 && begins(name, "transfer-encoding")))
		q->fault = HTTP_BAD_REQUEST; /* a body, which no request here has */
}

struct http_request_head http_request_of(const char *head, size_t n) {
	struct http_request_head q = {.fault = HTTP_OK, .keeps_alive = true, .wants_body = true};
	struct span rest = {head, n}, line = {head, 0};
	bool has_condition = false;
	if (!take_line(&rest, &line))
		return (struct http_request_head){.fault = HTTP_BAD_REQUEST};
	const struct span method = take_word(&line), target = take_word(&line);
	if (!begins(line, "HTTP/1.") || line.n != 8)
		return (struct http_request_head){.fault = HTTP_BAD_REQUEST};
	q.keeps_alive = line.at[7] != '0';
	q.wants_body = equals(method, "GET");
	if (!q.wants_body && !equals(method, "HEAD"))
		q.fault = HTTP_NOT_ALLOWED;
	else if (!take_name(target, q.name))
		q.fault = HTTP_NOT_FOUND;
	while (take_line(&rest, &line) && line.n > 0)
		take_header(line, &q, &has_condition);
	q.range.is_given = q.range.is_given && !has_condition;
	return q;
}
