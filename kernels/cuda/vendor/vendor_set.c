/* vendor_set.c: see vendor_set.h. */
#include "kernels/cuda/vendor/vendor_set.h"

#include "kernels/cuda/vendor/python.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VENDOR_FUNCTION(result, name, parameters) {#name, offsetof(struct cublaslt_api, name)},
static const struct library_symbol cublaslt_symbols[] = {
#include "kernels/cuda/vendor/cublaslt.def"
	{NULL, 0}};
#define VENDOR_FUNCTION(result, name, parameters) {#name, offsetof(struct cudnn_api, name)},
static const struct library_symbol cudnn_symbols[] = {
#include "kernels/cuda/vendor/cudnn.def"
	{NULL, 0}};
#define VENDOR_FUNCTION(result, name, parameters) {#name, offsetof(struct nvrtc_api, name)},
static const struct library_symbol nvrtc_symbols[] = {
#include "kernels/cuda/vendor/nvrtc.def"
	{NULL, 0}};
#define VENDOR_FUNCTION(result, name, parameters) {#name, offsetof(struct nccl_api, name)},
static const struct library_symbol nccl_symbols[] = {
#include "kernels/cuda/vendor/nccl.def"
	{NULL, 0}};

/* cuDNN opens these for attention, in this order. */
static const char *const cudnn_parts[] = {"libcudnn_graph.so.9", "libcudnn_engines_precompiled.so.9",
										  "libcudnn_heuristic.so.9", "libcudnn_engines_runtime_compiled.so.9"};

enum { CUDA_MAJOR_OLDEST = 12, CUDA_MAJOR_NEWEST = 13 };

static bool driver_runs(const struct vendor_set *v, int major) {
	return v->driver_major == 0 || major <= v->driver_major;
}

/* Adds names by version of CUDA: the plugin's first. */
static void add_names(const struct vendor_set *v, struct library *l, const char *stem) {
	int n = 0;
	for (int i = 0; i <= CUDA_MAJOR_NEWEST - CUDA_MAJOR_OLDEST + 1; i++) {
		int major = i == 0 ? v->runtime_major : CUDA_MAJOR_NEWEST - i + 1;
		if (driver_runs(v, major) && (i == 0 || major != v->runtime_major))
			(void)snprintf(l->names[n++], LIBRARY_NAME_BYTES, "%s.so.%d", stem, major);
	}
}

static void find_cublaslt(struct vendor_set *v) {
	struct vendor_state *s = &v->cublaslt;
	struct library l = {.title = "cuBLASLt", .symbols = cublaslt_symbols};
	add_names(v, &l, "libcublasLt");
	s->err = library_load(&v->search, &l, &v->cublaslt_api, &s->found, &s->why);
	if (s->err == RV_OK)
		s->version = (int)v->cublaslt_api.cublasLtGetVersion();
}

/* Finds NVRTC, with which cuDNN compiles: of cuDNN's own version of CUDA, and with its second
 * library opened. */
static enum rv_err find_nvrtc(struct vendor_set *v, int major) {
	struct vendor_state *s = &v->nvrtc;
	struct library l = {.title = "NVRTC", .symbols = nvrtc_symbols};
	char builtins[LIBRARY_NAME_BYTES];
	int own_major = 0, own_minor = 0;
	s->looked_for = true;
	(void)snprintf(l.names[0], LIBRARY_NAME_BYTES, "libnvrtc.so.%d", major);
	s->err = library_load(&v->search, &l, &v->nvrtc_api, &s->found, &s->why);
	if (s->err != RV_OK)
		return s->err;
	if (v->nvrtc_api.nvrtcVersion(&own_major, &own_minor) != NVRTC_SUCCESS)
		return s->err = rv_fail(&s->why, RV_E_UNSUPPORTED, "%s does not report its version", s->found.path);
	s->version = own_major * 10000 + own_minor * 100;
	(void)snprintf(builtins, sizeof builtins, "libnvrtc-builtins.so.%d.%d", own_major, own_minor);
	return s->err = library_preload(&v->search, s->found.path, builtins, &s->why);
}

/* Opens everything that cuDNN, which is open, will open by name. */
static enum rv_err find_companions(struct vendor_set *v, struct rv_errtext *why) {
	for (size_t i = 0; i < sizeof cudnn_parts / sizeof cudnn_parts[0]; i++)
		RV_TRY(library_preload(&v->search, v->cudnn.found.path, cudnn_parts[i], why));
	int major = (int)(v->cudnn_api.cudnnGetCudartVersion() / 1000);
	v->cudnn.version = (int)v->cudnn_api.cudnnGetVersion();
	if (!driver_runs(v, major))
		return rv_fail(why, RV_E_UNSUPPORTED, "%s is of CUDA %d, the driver of CUDA %d", v->cudnn.found.path, major,
					   v->driver_major);
	if (v->cublaslt.err != RV_OK || v->cublaslt.version / 10000 != major) {
		char name[LIBRARY_NAME_BYTES];
		(void)snprintf(name, sizeof name, "libcublasLt.so.%d", major);
		RV_TRY(library_preload(&v->search, NULL, name, why));
	}
	if (find_nvrtc(v, major) != RV_OK)
		return rv_fail(why, v->nvrtc.err, "%s", v->nvrtc.why.text);
	return RV_OK;
}

static void find_cudnn(struct vendor_set *v) {
	struct vendor_state *s = &v->cudnn;
	struct rv_errtext why = {0};
	struct library l = {.title = "cuDNN", .names = {"libcudnn.so.9"}, .symbols = cudnn_symbols};
	(void)vendor_set_cublaslt(v, NULL);
	s->err = library_load(&v->search, &l, &v->cudnn_api, &s->found, &s->why);
	if (s->err != RV_OK)
		return;
	s->err = find_companions(v, &why);
	if (s->err != RV_OK)
		(void)rv_fail(&s->why, s->err, "cuDNN (%s) lacks what it needs: %s", s->found.path, why.text);
}

static void find_nccl(struct vendor_set *v) {
	struct vendor_state *s = &v->nccl;
	struct library l = {.title = "NCCL", .names = {"libnccl.so.2"}, .symbols = nccl_symbols};
	s->err = library_load(&v->search, &l, &v->nccl_api, &s->found, &s->why);
	if (s->err == RV_OK && v->nccl_api.ncclGetVersion(&s->version) != ncclSuccess)
		s->err = rv_fail(&s->why, RV_E_UNSUPPORTED, "NCCL (%s) does not report its version", s->found.path);
}

static enum rv_err look_once(struct vendor_set *v, struct vendor_state *s, void (*find)(struct vendor_set *v)) {
	if (!s->looked_for) {
		s->looked_for = true;
		find(v);
	}
	return s->err;
}

/* Returns the packages that would help if `s` is unusable. */
static unsigned parts_for(const struct vendor_set *v, const struct vendor_state *s) {
	if (s == &v->cublaslt)
		return ADVICE_CUBLASLT;
	return s == &v->nccl ? ADVICE_NCCL : ADVICE_CUDNN | ADVICE_NVRTC;
}

static enum rv_err refuse(const struct vendor_set *v, const struct vendor_state *s, struct rv_errtext *et) {
	char advice[VENDOR_TEXT_BYTES];
	advice_write(advice, sizeof advice, parts_for(v, s), v->runtime_major, v->runtime_minor, v->manager);
	return rv_fail(et, RV_E_NOTFOUND, "%s; %s", s->why.text, advice);
}

const struct cublaslt_api *vendor_set_cublaslt(struct vendor_set *v, struct rv_errtext *et) {
	if (look_once(v, &v->cublaslt, find_cublaslt) == RV_OK)
		return &v->cublaslt_api;
	(void)refuse(v, &v->cublaslt, et);
	return NULL;
}

const struct cudnn_api *vendor_set_cudnn(struct vendor_set *v, struct rv_errtext *et) {
	if (look_once(v, &v->cudnn, find_cudnn) == RV_OK)
		return &v->cudnn_api;
	(void)rv_fail(et, v->cudnn.err, "%s", v->cudnn.why.text);
	return NULL;
}

const struct nccl_api *vendor_set_nccl(struct vendor_set *v, struct rv_errtext *et) {
	if (look_once(v, &v->nccl, find_nccl) == RV_OK)
		return &v->nccl_api;
	(void)refuse(v, &v->nccl, et);
	return NULL;
}

/* ---- the line ---- */

static void put(char out[VENDOR_TEXT_BYTES], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(char out[VENDOR_TEXT_BYTES], const char *format, ...) {
	size_t n = strlen(out);
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out + n, VENDOR_TEXT_BYTES - n, format, args);
	va_end(args);
}

static void put_found(char out[VENDOR_TEXT_BYTES], const char *title, const struct vendor_state *s) {
	if (!s->looked_for || s->err != RV_OK)
		return;
	put(out, "%s%s %d.%d.%d (%s)", out[0] ? ", " : "", title, s->version / 10000, s->version / 100 % 100,
		s->version % 100, s->found.path);
}

/* Returns the packages that would help. */
static unsigned put_missing(char out[VENDOR_TEXT_BYTES], const struct vendor_set *v, const struct vendor_state *s,
							const char *consequence) {
	if (!s->looked_for || s->err == RV_OK)
		return 0;
	put(out, "%s%s: %s", out[0] ? "; " : "", s->why.text, consequence);
	return parts_for(v, s);
}

void vendor_set_describe(struct vendor_set *v, char out[VENDOR_TEXT_BYTES]) {
	char advice[VENDOR_TEXT_BYTES];
	(void)vendor_set_cudnn(v, NULL); /* which looks for cuBLASLt */
	if (v->devices > 1)
		(void)vendor_set_nccl(v, NULL);
	out[0] = 0;
	put_found(out, "cuBLASLt", &v->cublaslt);
	put_found(out, "cuDNN", &v->cudnn);
	put_found(out, "NVRTC", &v->nvrtc);
	put_found(out, "NCCL", &v->nccl);
	unsigned parts = put_missing(out, v, &v->cublaslt, "matrix products are computed by Rivulet's own kernel, slower");
	parts |= put_missing(out, v, &v->cudnn, "attention is computed by Rivulet's own, slower kernels");
	parts |= put_missing(out, v, &v->nccl, "several GPUs exchange through the host's memory, which is slower");
	if (parts == 0)
		return;
	advice_write(advice, sizeof advice, parts, v->runtime_major, v->runtime_minor, v->manager);
	if (python_is_misnamed(&v->search.env))
		put(out, "; RIVULET_PYTHON=%.256s is no program: it names an interpreter, such as ~/rivulet-gpu/bin/python3",
			v->search.env.python);
	put(out, "; %s", advice);
}
