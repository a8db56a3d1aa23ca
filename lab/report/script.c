/* script.c: the page's scripts, and the policy that lets no other run. */
#include "lab/report/report_page.h"

#include "lab/report/embedded.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static void print_source(const char *script, FILE *out) {
	unsigned char hash[crypto_hash_sha256_BYTES];
	char text[sodium_base64_ENCODED_LEN(sizeof hash, sodium_base64_VARIANT_ORIGINAL)];
	crypto_hash_sha256(hash, (const unsigned char *)script, strlen(script));
	sodium_bin2base64(text, sizeof text, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
	(void)fprintf(out, " 'sha256-%s'", text);
}

void report_print_policy(FILE *out) {
	(void)fputs(
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; form-action "
		"'none'; style-src 'unsafe-inline'; script-src",
		out);
	if (embedded_chart_js[0]) {
		print_source(embedded_chart_js, out);
		print_source(embedded_report_js, out);
	} else {
		(void)fputs(" 'none'", out);
	}
	(void)fputs("\">\n", out);
}

/* Within <script> nothing is escaped for HTML: no "<" may stand there. */
static void print_json(const json_t *all, FILE *out) {
	char *text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(9));
	for (const char *c = text ? text : "[]"; *c; c++)
		(void)(*c == '<' ? fputs("\\u003c", out) : fputc(*c, out));
	free(text);
}

void report_print_scripts(const struct report_figures *f, FILE *out) {
	if (!embedded_chart_js[0])
		return;
	json_t *all = json_array();
	for (int i = 0; i < f->n_lines; i++)
		(void)json_array_append_new(all, chart_json_lines(&f->lines[i]));
	if (f->bars.n_bars > 0)
		(void)json_array_append_new(all, chart_json_bars(&f->bars));
	(void)fputs("<script type=\"application/json\" id=\"figures\">", out);
	print_json(all, out);
	(void)fprintf(out, "</script>\n<script>%s</script>\n<script>%s</script>\n", embedded_chart_js, embedded_report_js);
	json_decref(all);
}
