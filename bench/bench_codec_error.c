/* bench_codec_error.c: the error of each codec on an outer gradient, |Q(x) - x| / |x|, compared
 * with 16-bit floats: on drawn values, and on the difference of two fp32 .safetensors files if two
 * are given (the weights before and after a round of one worker with outer = average and codec =
 * fp32 are its outer gradient). */
#include "base/bytes.h"
#include "base/rng.h"
#include "outer/codec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 1 << 20, CHUNK = 65536, BLOCK = 256, SOURCES_MAX = 4 };

struct source {
	const char *name;
	float *x;
	size_t n;
};

static void *must_alloc(size_t bytes) {
	void *p = malloc(bytes);
	if (!p) {
		(void)fprintf(stderr, "bench_codec_error: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	return p;
}

/* ---- values ---- */

static double laplace(struct rv_rng *r) {
	const double u = rv_rng_double(r) - 0.5;
	return (u < 0 ? 1 : -1) * log1p(-2 * fabs(u));
}

/* Draws from Student's t with two degrees of freedom, whose variance is infinite. */
static double heavy(struct rv_rng *r) {
	const double a = rv_rng_normal(r), b = rv_rng_normal(r), c = rv_rng_normal(r);
	return a / sqrt((b * b + c * c) / 2);
}

static struct source drawn(const char *name, double (*draw)(struct rv_rng *r)) {
	struct source s = {name, must_alloc(VALUES * sizeof(float)), VALUES};
	struct rv_rng r = rv_rng_of(1, 0);
	for (size_t i = 0; i < s.n; i++)
		s.x[i] = (float)(1e-3 * draw(&r));
	return s;
}

/* Reads the values of a .safetensors file: behind the header, whose length comes first. */
static float *read_values(const char *path, size_t *n) {
	FILE *f = fopen(path, "rb");
	uint8_t length[8];
	if (!f || fread(length, 1, sizeof length, f) != sizeof length) {
		(void)fprintf(stderr, "bench_codec_error: %s cannot be read\n", path);
		exit(1);
	}
	struct rv_reader r = rv_reader_of(length, sizeof length);
	const long header = (long)rv_read_u64(&r) + (long)sizeof length;
	(void)fseek(f, 0, SEEK_END);
	*n = (size_t)(ftell(f) - header) / sizeof(float);
	float *x = must_alloc(*n * sizeof *x);
	(void)fseek(f, header, SEEK_SET);
	if (fread(x, sizeof *x, *n, f) != *n)
		exit(1);
	(void)fclose(f);
	return x;
}

static struct source difference(const char *before, const char *after) {
	size_t n, m;
	float *x = read_values(before, &n), *y = read_values(after, &m);
	if (n != m) {
		(void)fprintf(stderr, "bench_codec_error: %s has %zu values, %s %zu\n", before, n, after, m);
		exit(1);
	}
	for (size_t i = 0; i < n; i++)
		x[i] -= y[i];
	free(y);
	return (struct source){"training", x, n};
}

/* ---- peers: 16-bit floats ---- */

/* Returns x as a float of `bits` significant bits, whose least normal exponent is `least`. */
static double rounded(double x, int bits, int least) {
	int exponent;
	(void)frexp(x, &exponent);
	const int unit = (exponent > least ? exponent : least) - bits;
	return ldexp(rint(ldexp(x, -unit)), unit);
}

static double as_bf16(double x, double absmax) {
	(void)absmax;
	return rounded(x, 8, -125);
}

static double as_fp16(double x, double absmax) {
	(void)absmax;
	return rounded(x, 11, -13);
}

static double as_scaled_fp16(double x, double absmax) {
	const double scale = absmax > 0 ? absmax / 65504 : 1;
	return rounded(x / scale, 11, -13) * scale;
}

/* ---- errors ---- */

static double relative_error(const float *x, const float *y, size_t n) {
	double off = 0, all = 0;
	for (size_t i = 0; i < n; i++) {
		off += ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]);
		all += (double)x[i] * (double)x[i];
	}
	return sqrt(off / all);
}

static double float_error(const struct source *s, double (*as)(double x, double absmax)) {
	float *y = must_alloc(s->n * sizeof *y);
	for (size_t at = 0; at < s->n; at += BLOCK) {
		const size_t end = at + BLOCK < s->n ? at + BLOCK : s->n;
		double absmax = 0;
		for (size_t i = at; i < end; i++)
			absmax = fmax(absmax, fabs((double)s->x[i]));
		for (size_t i = at; i < end; i++)
			y[i] = (float)as((double)s->x[i], absmax);
	}
	const double error = relative_error(s->x, y, s->n);
	free(y);
	return error;
}

static double codec_error(const struct source *s, const struct codec *c) {
	float *y = must_alloc(s->n * sizeof *y);
	uint8_t *code = must_alloc(c->encoded_bytes(c, CHUNK));
	for (size_t at = 0; at < s->n; at += CHUNK) {
		const size_t n = s->n - at < CHUNK ? s->n - at : CHUNK;
		if (c->encode(c, s->x + at, n, code, NULL) != RV_OK || c->decode(c, code, n, y + at, NULL) != RV_OK)
			exit(1);
	}
	const double error = relative_error(s->x, y, s->n);
	free(y);
	free(code);
	return error;
}

static void print_row(const char *name, double bits, const double *errors, int n) {
	printf("%-14s %8.3f", name, bits);
	for (int i = 0; i < n; i++)
		printf(" %11.2e", errors[i]);
	printf("\n");
}

int main(int argc, char **argv) {
	static const struct {
		const char *name;
		double bits;
		double (*as)(double x, double absmax);
	} floats[] = {{"(bf16)", 16, as_bf16}, {"(fp16)", 16, as_fp16}, {"(fp16, scaled)", 16.125, as_scaled_fp16}};
	struct source sources[SOURCES_MAX] = {drawn("normal", rv_rng_normal), drawn("Laplace", laplace),
										  drawn("Student t2", heavy)};
	int n = 3;
	double errors[SOURCES_MAX];
	if (argc == 3)
		sources[n++] = difference(argv[1], argv[2]);
	printf("%-14s %8s", "codec", "bits");
	for (int i = 0; i < n; i++)
		printf(" %11s", sources[i].name);
	printf("\n");
	for (const struct codec *const *c = codec_registry; *c; c++) {
		for (int i = 0; i < n; i++)
			errors[i] = codec_error(&sources[i], *c);
		print_row((*c)->name, 8.0 * (double)(*c)->encoded_bytes(*c, CHUNK) / CHUNK, errors, n);
	}
	for (size_t k = 0; k < sizeof floats / sizeof floats[0]; k++) {
		for (int i = 0; i < n; i++)
			errors[i] = float_error(&sources[i], floats[k].as);
		print_row(floats[k].name, floats[k].bits, errors, n);
	}
	for (int i = 0; i < n; i++)
		free(sources[i].x);
	return 0;
}
