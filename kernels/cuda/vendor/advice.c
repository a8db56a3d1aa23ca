/* advice.c: see advice.h. Names of packages: pypi.org, and NVIDIA's installation guides for CUDA,
 * cuDNN and NCCL. */
#include "kernels/cuda/vendor/advice.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_BYTES = 256, LINE_BYTES = 256 };

/* "@" stands for the major version of CUDA, "#" for the minor one. */
static const struct package {
	unsigned part;
	const char *pip, *pip_12; /* from 13 on CUDA's own libraries carry no version in their names */
	const char *apt, *dnf;
} packages[] = {
	{ADVICE_CUBLASLT, "nvidia-cublas", "nvidia-cublas-cu@", "libcublas-@-#", "libcublas-@-#"},
	{ADVICE_CUDNN, "nvidia-cudnn-cu@", "nvidia-cudnn-cu@", "libcudnn9-cuda-@", "libcudnn9-cuda-@"},
	{ADVICE_NVRTC, "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu@", "cuda-nvrtc-@-#", "cuda-nvrtc-@-#"},
	{ADVICE_NCCL, "nvidia-nccl-cu@", "nvidia-nccl-cu@", "libnccl2", "libnccl"},
};

static bool names(const char *line, const char *word) {
	return strstr(line, word) != NULL;
}

enum advice_manager advice_manager_of(const char *os_release_path) {
	char line[LINE_BYTES];
	enum advice_manager m = ADVICE_PIP_ONLY;
	FILE *f = fopen(os_release_path, "re");
	while (f && m == ADVICE_PIP_ONLY && fgets(line, sizeof line, f)) {
		if (strncmp(line, "ID=", 3) != 0 && strncmp(line, "ID_LIKE=", 8) != 0)
			continue;
		if (names(line, "debian") || names(line, "ubuntu"))
			m = ADVICE_APT;
		else if (names(line, "fedora") || names(line, "rhel"))
			m = ADVICE_DNF;
	}
	if (f)
		(void)fclose(f);
	return m;
}

static void append(char out[NAMES_BYTES], const char *name, int major, int minor) {
	size_t n = strlen(out);
	n += (size_t)snprintf(out + n, NAMES_BYTES - n, " ");
	for (; *name && n < NAMES_BYTES - 16; name++)
		if (*name == '@' || *name == '#')
			n += (size_t)snprintf(out + n, NAMES_BYTES - n, "%d", *name == '@' ? major : minor);
		else
			out[n++] = *name, out[n] = 0;
}

void advice_write(char *out, size_t cap, unsigned parts, int major, int minor, enum advice_manager manager) {
	char pip[NAMES_BYTES] = "", system[NAMES_BYTES] = "";
	for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++) {
		const struct package *p = &packages[i];
		if (!(parts & p->part))
			continue;
		append(pip, major < 13 ? p->pip_12 : p->pip, major, minor);
		append(system, manager == ADVICE_DNF ? p->dnf : p->apt, major, minor);
	}
	int n = snprintf(out, cap,
					 "to install: python3 -m venv ~/rivulet-gpu && ~/rivulet-gpu/bin/pip install%s, then set "
					 "RIVULET_PYTHON=~/rivulet-gpu/bin/python3",
					 pip);
	if (manager != ADVICE_PIP_ONLY && n > 0 && (size_t)n < cap)
		(void)snprintf(out + n, cap - (size_t)n, "; or, with NVIDIA's repository: sudo %s install%s",
					   manager == ADVICE_APT ? "apt" : "dnf", system);
}
