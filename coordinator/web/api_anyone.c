/* api_anyone.c: pages and figures that anyone may read. */
#include "base/loss_curve.h"
#include "base/run_about.h"
#include "coordinator/web/api_internal.h"
#include "coordinator/web/dashboard.h"
#include "net/http_server/query.h"

#include <event2/buffer.h>
#include <string.h>

enum {
	CHART_WIDTH_LEAST = 240, /* pixels */
	CHART_WIDTH_MOST = 2000
};

static void serve_dashboard(struct api *a, const struct request *q) {
	(void)a;
	(void)evhttp_add_header(evhttp_request_get_output_headers(q->rq), "Content-Security-Policy",
							"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
							"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	reply(q->rq, STATUS_OK, "text/html; charset=utf-8", dashboard_html, dashboard_html_bytes);
}

static void serve_status(struct api *a, const struct request *q) {
	api_send_status(a, q, false);
}

static void serve_chart(struct api *a, const struct request *q) {
	size_t n = 0;
	const char *query = api_query_of(q, &n);
	uint64_t width = CHART_WIDTH_LEAST;
	if (query_number(query, n, "width", &width) == QUERY_INVALID)
		reply_text(q->rq, STATUS_BAD_REQUEST, "chart: width must be a number of pixels");
	else
		api_reply_made(q, "image/svg+xml",
					   service_loss_chart(a->service, width < CHART_WIDTH_LEAST  ? CHART_WIDTH_LEAST
													  : width > CHART_WIDTH_MOST ? CHART_WIDTH_MOST
																				 : (int)width));
}

static void serve_heldout(struct api *a, const struct request *q) {
	char text[LOSS_CURVE_TEXT_BYTES];
	service_heldout_text(a->service, text);
	reply(q->rq, STATUS_OK, "text/plain; charset=utf-8", text, strlen(text));
}

static void serve_config(struct api *a, const struct request *q) {
	const char *text = service_run_config(a->service);
	const struct run_about about = service_about(a->service);
	char lines[RUN_ABOUT_BYTES];
	run_about_print(&about, lines);
	(void)evbuffer_add(evhttp_request_get_output_buffer(q->rq), lines, strlen(lines));
	reply(q->rq, STATUS_OK, "text/plain; charset=utf-8", text, strlen(text));
}

static void serve_metrics(struct api *a, const struct request *q) {
	api_reply_made(q, "text/plain; version=0.0.4; charset=utf-8", service_metrics(a->service, q->now_us));
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
