/* fake_library.c: a shared library with the functions of a list (FAKE_LIST), all of which return 0;
 * fake_versions.c has those that say a version. For the tests of kernels/cuda/vendor/. */
#define VENDOR_FUNCTION(result, name, parameters)                                                                      \
	int name(void);                                                                                                    \
	__attribute__((weak)) int name(void) {                                                                             \
		return 0;                                                                                                      \
	}
#include FAKE_LIST
