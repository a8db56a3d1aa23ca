/* launcher.c: bin/rivulet-worker of the portable tarball: runs the program with the C library and
 * the other libraries that lie beside it, whatever those of the system are.
 *
 *     DIR/bin/rivulet-worker              this, linked statically
 *     DIR/libexec/rivulet-worker          the dynamic loader, under the name that `ps` shall show
 *     DIR/lib/rivulet/rivulet-worker.bin  the program
 *     DIR/lib/                            its libraries
 *
 * The loader's file is what /proc/self/exe names then: the program finds its CUDA plugin from
 * there (../lib/rivulet), and must not run itself anew to make OpenMP wait asleep
 * (kernels/wait_policy.h): so the variable for it is set here. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAULT = 1, WORDS_BEFORE = 6 };

/* Writes DIR of the path of this file, DIR/bin/NAME. */
static int find_directory(char out[PATH_MAX]) {
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	if (n <= 0)
		return 0;
	out[n] = '\0';
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(out, '/');
		if (!slash)
			return 0;
		*slash = '\0';
	}
	return 1;
}

/* Names the file of the system's authorities to the program, whose libcurl is Debian's and looks at
 * the first of these places only. */
static void find_authorities(void) {
	static const char *const places[] = {"/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Alpine */
										 "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
										 "/etc/ssl/ca-bundle.pem",             /* openSUSE */
										 "/etc/ssl/cert.pem"};
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		if (access(places[i], R_OK) == 0) {
			if (i > 0)
				(void)setenv("SSL_CERT_FILE", places[i], 0);
			return;
		}
	}
}

int main(int argc, char **argv) {
	char dir[PATH_MAX], loader[PATH_MAX + 64], libraries[PATH_MAX + 64], program[PATH_MAX + 64];
	char **words = calloc((size_t)argc + WORDS_BEFORE + 1, sizeof *words);
	if (!words || argc < 1 || !find_directory(dir)) {
		(void)fprintf(stderr, "rivulet-worker: cannot find its own directory: is /proc mounted?\n");
		return FAULT;
	}
	(void)snprintf(loader, sizeof loader, "%s/libexec/rivulet-worker", dir);
	(void)snprintf(libraries, sizeof libraries, "%s/lib", dir);
	(void)snprintf(program, sizeof program, "%s/lib/rivulet/rivulet-worker.bin", dir);
	char *before[WORDS_BEFORE] = {argv[0], "--argv0", argv[0], "--library-path", libraries, program};
	memcpy(words, before, sizeof before);
	memcpy(words + WORDS_BEFORE, argv + 1, (size_t)(argc - 1) * sizeof *argv);
	if (!getenv("GOMP_SPINCOUNT"))
		(void)setenv("OMP_WAIT_POLICY", "passive", 0);
	find_authorities();
	(void)execv(loader, words);
	(void)fprintf(stderr, "rivulet-worker: %s: %s\n", loader, strerror(errno));
	return FAULT;
}
