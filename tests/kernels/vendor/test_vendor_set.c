/* test_vendor_set.c: which of NVIDIA's libraries go together, and the line that says what is there
 * and how to get the rest. The libraries are fakes of the right names and functions. */

#include "kernels/cuda/vendor/vendor_set.h"
#include "tests/common/check.h"
#include "tree.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct machine {
	struct tree t;
	struct vendor_set v;
	char python[PLACE_BYTES], home[PLACE_BYTES], text[VENDOR_TEXT_BYTES];
};

#define PIP "venv/lib/python3.12/site-packages/nvidia/"

/* What pip install puts there: of CUDA 13, and of CUDA 12. */
static const char *const wheels_13[][2] = {
	{PIP "cu13/lib/libcublasLt.so.13", "cublaslt"},
	{PIP "cu13/lib/libnvrtc.so.13", "nvrtc"},
	{PIP "cu13/lib/libnvrtc-builtins.so.13.0", "libnvrtc-builtins"},
	{PIP "cudnn/lib/libcudnn.so.9", "cudnn"},
	{PIP "cudnn/lib/libcudnn_graph.so.9", "libcudnn_graph"},
	{PIP "cudnn/lib/libcudnn_engines_precompiled.so.9", "libcudnn_engines_precompiled"},
	{PIP "cudnn/lib/libcudnn_engines_runtime_compiled.so.9", "libcudnn_engines_runtime_compiled"},
	{PIP "cudnn/lib/libcudnn_heuristic.so.9", "libcudnn_heuristic"},
	{PIP "nccl/lib/libnccl.so.2", "nccl"},
};
static const char *const wheels_12[][2] = {
	{PIP "cublas/lib/libcublasLt.so.12", "cublaslt"},
	{PIP "cuda_nvrtc/lib/libnvrtc.so.12", "nvrtc"},
	{PIP "cuda_nvrtc/lib/libnvrtc-builtins.so.12.9", "libnvrtc-builtins"},
};
enum { WHEELS_13 = sizeof wheels_13 / sizeof wheels_13[0], WHEELS_12 = sizeof wheels_12 / sizeof wheels_12[0] };

static int set_up(void **state) {
	struct machine *m = calloc(1, sizeof *m);
	assert_non_null(m);
	tree_init(&m->t);
	tree_put_file(&m->t, "venv/pyvenv.cfg", "");
	tree_put_binary(&m->t, "venv/bin/python3");
	(void)snprintf(m->python, sizeof m->python, "%s/venv/bin/python3", m->t.root);
	(void)snprintf(m->home, sizeof m->home, "%s/toolkit", m->t.root);
	m->t.env.python = m->python;
	m->t.env.cuda_home = m->home;
	(void)unsetenv("FAKE_CUDNN_CUDART");
	*state = m;
	return 0;
}

static int tear_down(void **state) {
	struct machine *m = *state;
	tree_release(&m->t);
	free(m);
	return 0;
}

static void put_wheels(struct machine *m, const char *const (*wheels)[2], int n) {
	for (int i = 0; i < n; i++)
		tree_put_library(&m->t, wheels[i][0], wheels[i][1]);
}

static void take_away(struct machine *m, const char *path) {
	assert_int_equal(unlink(tree_at(&m->t, path)), 0);
}

/* A process that starts on the machine as it is now. */
static void start(struct machine *m) {
	m->v = (struct vendor_set){.search = library_search_with(&m->t.env),
							   .runtime_major = 13,
							   .runtime_minor = 0,
							   .driver_major = 13,
							   .devices = 2,
							   .manager = ADVICE_APT};
}

static void assert_says(const char *text, const char *part) {
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

/* What RIVULET_PYTHON names wrongly is said beside what is missing. */
static void test_a_misnamed_python(void **state) {
	struct machine *m = *state;
	start(m);
	vendor_set_describe(&m->v, m->text);
	assert_null(strstr(m->text, " is no program"));
	const char *const wrong[] = {"/nonexistent/python3", m->t.root, "python-that-is-nowhere"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char want[PLACE_BYTES];
		m->t.env.python = wrong[i];
		start(m);
		vendor_set_describe(&m->v, m->text);
		(void)snprintf(want, sizeof want, "RIVULET_PYTHON=%.200s is no program", wrong[i]);
		assert_says(m->text, want);
	}
}

static void test_all_there(void **state) {
	struct machine *m = *state;
	put_wheels(m, wheels_13, WHEELS_13);
	start(m);
	assert_ptr_equal(vendor_set_cublaslt(&m->v, NULL), &m->v.cublaslt_api);
	assert_ptr_equal(vendor_set_cudnn(&m->v, NULL), &m->v.cudnn_api);
	assert_ptr_equal(vendor_set_nccl(&m->v, NULL), &m->v.nccl_api);
	vendor_set_describe(&m->v, m->text);
	char want[VENDOR_TEXT_BYTES];
	(void)snprintf(want, sizeof want,
				   "cuBLASLt 13.1.0 (%s/" PIP "cu13/lib/libcublasLt.so.13), cuDNN 9.19.0 (%s/" PIP
				   "cudnn/lib/libcudnn.so.9), NVRTC 13.0.0 (%s/" PIP "cu13/lib/libnvrtc.so.13), NCCL 2.28.9 (%s/" PIP
				   "nccl/lib/libnccl.so.2)",
				   m->t.root, m->t.root, m->t.root, m->t.root);
	assert_string_equal(m->text, want);
	/* What cuDNN opens by name is open. */
	for (int i = 1; i < WHEELS_13 - 1; i++)
		if (!dlopen(strrchr(wheels_13[i][0], '/') + 1, RTLD_NOW | RTLD_NOLOAD))
			fail_msg("%s is not loaded", wheels_13[i][0]);
}

/* The plugin's version of CUDA goes before the other, wherever it lies; the other will do. */
static void test_versions_of_cuda(void **state) {
	struct machine *m = *state;
	tree_put_library(&m->t, "toolkit/lib64/libcublasLt.so.12", "cublaslt");
	start(m);
	assert_non_null(vendor_set_cublaslt(&m->v, NULL));
	assert_int_equal(m->v.cublaslt.version, 120903);
	tree_put_library(&m->t, wheels_13[0][0], wheels_13[0][1]);
	start(m);
	assert_non_null(vendor_set_cublaslt(&m->v, NULL));
	assert_int_equal(m->v.cublaslt.version, 130100);
	start(m);
	m->v.runtime_major = 12;
	assert_non_null(vendor_set_cublaslt(&m->v, NULL));
	assert_int_equal(m->v.cublaslt.version, 120903);
	take_away(m, "toolkit/lib64/libcublasLt.so.12");
	start(m);
	m->v.runtime_major = 12;
	assert_non_null(vendor_set_cublaslt(&m->v, NULL));
	assert_int_equal(m->v.cublaslt.version, 130100);
	start(m); /* whose driver would not run it */
	m->v.runtime_major = m->v.driver_major = 12;
	assert_null(vendor_set_cublaslt(&m->v, NULL));
}

static void assert_no_cudnn(struct machine *m, const char *part) {
	struct rv_errtext et = {0};
	start(m);
	assert_null(vendor_set_cudnn(&m->v, &et));
	assert_says(et.text, part);
	vendor_set_describe(&m->v, m->text);
	assert_says(m->text, part);
	assert_says(m->text, "attention is computed by Rivulet's own, slower kernels; to install: ");
	assert_says(m->text, "pip install nvidia-cudnn-cu13 nvidia-cuda-nvrtc,");
	assert_says(m->text, "sudo apt install libcudnn9-cuda-13 cuda-nvrtc-13-0");
}

/* cuDNN would end the process where something is missing that it opens by name. */
static void test_cudnn_without_what_it_needs(void **state) {
	struct machine *m = *state;
	for (int missing = 1; missing < WHEELS_13 - 1; missing++) {
		put_wheels(m, wheels_13, WHEELS_13);
		take_away(m, wheels_13[missing][0]);
		assert_no_cudnn(m, strrchr(wheels_13[missing][0], '/') + 1);
		assert_says(m->text, "cuBLASLt 13.1.0 (");
	}
}

/* cuDNN of CUDA 12 beside a plugin of CUDA 13: with everything of CUDA 12 it works. */
static void test_cudnn_of_another_cuda(void **state) {
	struct machine *m = *state;
	put_wheels(m, wheels_13, WHEELS_13);
	(void)setenv("FAKE_CUDNN_CUDART", "12090", 1);
	assert_no_cudnn(m, "libcublasLt.so.12");
	tree_put_library(&m->t, wheels_12[0][0], wheels_12[0][1]);
	assert_no_cudnn(m, "libnvrtc.so.12");
	put_wheels(m, wheels_12, WHEELS_12);
	start(m);
	assert_non_null(vendor_set_cudnn(&m->v, NULL));
	assert_int_equal(m->v.cublaslt.version, 130100);
	assert_int_equal(m->v.nvrtc.version, 120900);
	(void)setenv("FAKE_CUDNN_CUDART", "14000", 1);
	assert_no_cudnn(m, "libcudnn.so.9 is of CUDA 14, the driver of CUDA 13");
}

static void test_nothing_there(void **state) {
	struct machine *m = *state;
	struct rv_errtext et = {0};
	start(m);
	assert_null(vendor_set_cublaslt(&m->v, &et));
	assert_string_equal(
		et.text, "no cuBLASLt: libcublasLt.so.13 is neither where the loader looks nor in 0 other folders; to install: "
				 "python3 -m venv ~/rivulet-gpu && ~/rivulet-gpu/bin/pip install nvidia-cublas, then set "
				 "RIVULET_PYTHON=~/rivulet-gpu/bin/python3; or, with NVIDIA's repository: sudo apt install "
				 "libcublas-13-0");
	assert_null(vendor_set_nccl(&m->v, &et));
	assert_says(et.text, "no NCCL: libnccl.so.2");
	assert_says(et.text, "apt install libnccl2");
	vendor_set_describe(&m->v, m->text);
	assert_says(m->text, "no cuBLASLt: ");
	assert_says(m->text, ": matrix products are computed by Rivulet's own kernel, slower; ");
	assert_says(m->text, "no cuDNN: ");
	assert_says(m->text, "no NCCL: ");
	assert_says(m->text, ": several GPUs exchange through the host's memory, which is slower; to install: ");
	assert_says(m->text, "pip install nvidia-cublas nvidia-cudnn-cu13 nvidia-cuda-nvrtc nvidia-nccl-cu13,");
	assert_says(m->text, "sudo apt install libcublas-13-0 libcudnn9-cuda-13 cuda-nvrtc-13-0 libnccl2");
	assert_true(strlen(m->text) < VENDOR_TEXT_BYTES - 1);
	assert_null(strchr(m->text, '\n'));
}

/* One GPU exchanges with nobody. */
static void test_nccl_is_for_several(void **state) {
	struct machine *m = *state;
	put_wheels(m, wheels_13, WHEELS_13 - 1);
	start(m);
	m->v.devices = 1;
	vendor_set_describe(&m->v, m->text);
	assert_null(strstr(m->text, "NCCL"));
	assert_null(strstr(m->text, "install"));
}

/* The first search decides for the whole process. */
static void test_looked_for_once(void **state) {
	struct machine *m = *state;
	tree_put_file(&m->t, "toolkit/lib64/other", ""); /* the folder is known from the start */
	start(m);
	assert_null(vendor_set_cublaslt(&m->v, NULL));
	tree_put_library(&m->t, "toolkit/lib64/libcublasLt.so.13", "cublaslt");
	assert_null(vendor_set_cublaslt(&m->v, NULL));
	start(m);
	assert_non_null(vendor_set_cublaslt(&m->v, NULL));
}

static void test_advice(void **state) {
	struct machine *m = *state;
	static const struct {
		const char *os_release;
		enum advice_manager manager;
	} systems[] = {{"PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n", ADVICE_APT},
				   {"ID=ubuntu\nID_LIKE=debian\n", ADVICE_APT},
				   {"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", ADVICE_APT},
				   {"NAME=\"Fedora Linux\"\nID=fedora\n", ADVICE_DNF},
				   {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", ADVICE_DNF},
				   {"NAME=\"not debian\"\nID=arch\n", ADVICE_PIP_ONLY},
				   {"", ADVICE_PIP_ONLY}};
	char text[VENDOR_TEXT_BYTES];
	for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++) {
		tree_put_file(&m->t, "etc/os-release", systems[i].os_release);
		assert_int_equal(advice_manager_of(tree_at(&m->t, "etc/os-release")), systems[i].manager);
	}
	assert_int_equal(advice_manager_of("/nonexistent"), ADVICE_PIP_ONLY);
	advice_write(text, sizeof text, ADVICE_CUBLASLT | ADVICE_CUDNN | ADVICE_NVRTC | ADVICE_NCCL, 12, 9, ADVICE_DNF);
	assert_says(text, "pip install nvidia-cublas-cu12 nvidia-cudnn-cu12 nvidia-cuda-nvrtc-cu12 nvidia-nccl-cu12,");
	assert_says(text, "sudo dnf install libcublas-12-9 libcudnn9-cuda-12 cuda-nvrtc-12-9 libnccl");
	advice_write(text, sizeof text, ADVICE_NCCL, 13, 0, ADVICE_PIP_ONLY);
	assert_null(strstr(text, "sudo"));
	char small[32];
	advice_write(small, sizeof small, ADVICE_NCCL, 13, 0, ADVICE_APT);
	assert_int_equal(strlen(small), sizeof small - 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {TEST(test_all_there), /* first: what is loaded stays */
									   TEST(test_a_misnamed_python), TEST(test_cudnn_without_what_it_needs),
									   TEST(test_versions_of_cuda),  TEST(test_cudnn_of_another_cuda),
									   TEST(test_nothing_there),     TEST(test_nccl_is_for_several),
									   TEST(test_looked_for_once),   TEST(test_advice)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
