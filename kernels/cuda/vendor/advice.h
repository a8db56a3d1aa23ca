/* advice.h: how to install those of NVIDIA's libraries that are missing, in one clause. */
#ifndef RV_CUDA_VENDOR_ADVICE_H
#define RV_CUDA_VENDOR_ADVICE_H

#include <stddef.h>

/* Libraries, as bits. */
enum advice_part { ADVICE_CUBLASLT = 1, ADVICE_CUDNN = 2, ADVICE_NVRTC = 4, ADVICE_NCCL = 8 };

enum advice_manager { ADVICE_APT, ADVICE_DNF, ADVICE_PIP_ONLY };

/* Returns the package manager for which NVIDIA has a repository, by the ID and ID_LIKE of an
 * os-release file: Debian, Ubuntu and their derivatives; Fedora and RHEL. */
enum advice_manager advice_manager_of(const char *os_release_path);
/* Writes the commands that install `parts` of CUDA major.minor: with pip, which needs no
 * administrator, and with the package manager. */
void advice_write(char *out, size_t cap, unsigned parts, int major, int minor, enum advice_manager manager);

#endif
