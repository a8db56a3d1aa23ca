/* python.h: where a Python keeps the packages that pip installs.
 *
 * Derived from the interpreter's place, without running it: a virtual environment by its
 * pyvenv.cfg, else PREFIX/lib/python3.N/site-packages of the file that its links lead to, Debian's
 * dist-packages, and the user's own in ~/.local. If that gives no folder (pyenv and others put a
 * script of that name in PATH) the interpreter is run, without a shell, and killed after
 * env->python_timeout_ms. */
#ifndef RV_CUDA_VENDOR_PYTHON_H
#define RV_CUDA_VENDOR_PYTHON_H

#include "kernels/cuda/vendor/places.h"

/* Adds the package folders of env->python, or else of the first python3 or python in env->path;
 * none without an interpreter. */
void python_package_folders(struct place_list *out, const struct vendor_environment *env);
/* Returns true if RIVULET_PYTHON is set and names no program. */
bool python_is_misnamed(const struct vendor_environment *env);

#endif
