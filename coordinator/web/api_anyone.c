/* api_anyone.c: pages and figures that anyone may read. */
#include "base/loss_curve.h"
#include "base/run_about.h"
#include "coordinator/web/api_internal.h"
#include "coordinator/web/dashboard.h"
#include "net/http_server/query.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHART_WIDTH_LEAST = 240, /* pixels */
	CHART_WIDTH_MOST = 2000,
	/* What strangers of one site read: so many parts of PART_BYTES at once, then 1 MiB in a second.
	 * The dashboard of a small run takes two in a second. */
	PART_BYTES = 1 << 16,
	PARTS_BURST = 256,
	PARTS_PER_S = 16
};

void api_anyone_init(struct api *a) {
	rate_limit_init(&a->pages, PARTS_BURST, PARTS_PER_S);
}

bool api_may_read(const struct api *a, const struct request *q) {
	return rate_limit_allows(&a->pages, q->sight.host, q->now_us);
}

/* Replies with a page, and counts its bytes for the stranger's site; NULL: there was no memory. */
static void send_page(struct api *a, const struct request *q, const char *type, const void *text, size_t n) {
	for (size_t at = 0; q->is_stranger && at <= n; at += PART_BYTES)
		rate_limit_count(&a->pages, q->sight.host, q->now_us);
	if (text == NULL)
		reply_text(q->rq, STATUS_UNAVAILABLE, "no memory");
	else
		reply(q->rq, STATUS_OK, type, text, n);
}

static void send_text(struct api *a, const struct request *q, const char *type, const char *text) {
	send_page(a, q, type, text, text != NULL ? strlen(text) : 0);
}

static void serve_dashboard(struct api *a, const struct request *q) {
	(void)evhttp_add_header(evhttp_request_get_output_headers(q->rq), "Content-Security-Policy",
							"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
							"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	send_page(a, q, "text/html; charset=utf-8", dashboard_html, dashboard_html_bytes);
}

static void serve_status(struct api *a, const struct request *q) {
	send_text(a, q, "application/json", status_cache_text(&a->status, a->service, q->now_us, STATUS_PAGE_JSON));
}

static void serve_chart(struct api *a, const struct request *q) {
	size_t n = 0;
	const char *query = api_query_of(q, &n);
	uint64_t width = CHART_WIDTH_LEAST;
	if (query_number(query, n, "width", &width) == QUERY_INVALID) {
		reply_text(q->rq, STATUS_BAD_REQUEST, "chart: width must be a number of pixels");
		return;
	}
	char *text = service_loss_chart(a->service, width < CHART_WIDTH_LEAST  ? CHART_WIDTH_LEAST
												: width > CHART_WIDTH_MOST ? CHART_WIDTH_MOST
																		   : (int)width);
	send_text(a, q, "image/svg+xml", text);
	free(text);
}

static void serve_heldout(struct api *a, const struct request *q) {
	char text[LOSS_CURVE_TEXT_BYTES];
	service_heldout_text(a->service, text);
	send_text(a, q, "text/plain; charset=utf-8", text);
}

static void serve_config(struct api *a, const struct request *q) {
	const char *text = service_run_config(a->service);
	const struct run_about about = service_about(a->service);
	char lines[RUN_ABOUT_BYTES];
	run_about_print(&about, lines);
	(void)evbuffer_add(evhttp_request_get_output_buffer(q->rq), lines, strlen(lines));
	send_text(a, q, "text/plain; charset=utf-8", text);
}

static void serve_metrics(struct api *a, const struct request *q) {
	send_text(a, q, "text/plain; version=0.0.4; charset=utf-8",
			  status_cache_text(&a->status, a->service, q->now_us, STATUS_PAGE_METRICS));
}

const struct api_route api_anyone_routes[] = {
	{EVHTTP_REQ_GET, "/", serve_dashboard, false},
	{EVHTTP_REQ_GET, "/v1/status", serve_status, false},
	{EVHTTP_REQ_GET, "/v1/chart", serve_chart, false},
	{EVHTTP_REQ_GET, "/v1/heldout", serve_heldout, false},
	{EVHTTP_REQ_GET, "/v1/config", serve_config, false},
	{EVHTTP_REQ_GET, "/metrics", serve_metrics, false},
	{.path = NULL},
};
