/* fake_versions.c: versions that the fake libraries give: of CUDA 12 where the file's name ends in
 * .12, else of CUDA 13; cuDNN's is of the CUDA that FAKE_CUDNN_CUDART names, or of 13.0. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

size_t cublasLtGetVersion(void);
size_t cudnnGetVersion(void);
size_t cudnnGetCudartVersion(void);
int ncclGetVersion(int *version);
int nvrtcVersion(int *major, int *minor);

static int is_of_cuda_12(void) {
	Dl_info self;
	size_t n = dladdr((void *)&cublasLtGetVersion, &self) ? strlen(self.dli_fname) : 0;
	return n > 3 && strcmp(self.dli_fname + n - 3, ".12") == 0;
}

size_t cublasLtGetVersion(void) {
	return is_of_cuda_12() ? 120903 : 130100;
}

size_t cudnnGetVersion(void) {
	return 91900;
}

size_t cudnnGetCudartVersion(void) {
	const char *said = getenv("FAKE_CUDNN_CUDART");
	return said ? (size_t)atoi(said) : 13000;
}

int ncclGetVersion(int *version) {
	*version = 22809;
	return 0;
}

int nvrtcVersion(int *major, int *minor) {
	*major = is_of_cuda_12() ? 12 : 13;
	*minor = is_of_cuda_12() ? 9 : 0;
	return 0;
}
