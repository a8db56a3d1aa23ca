/* python.h: where a Python keeps the packages that pip installs.
 *
 * Worked out from where the interpreter lies, without running it: a virtual environment by its pyvenv.cfg, else
 * PREFIX/lib/python3.N/site-packages of the file that its links lead to, Debian's dist-packages, and the user's own in
 * ~/.local. Where that gives no folder (pyenv and others put a script of that name in PATH) the interpreter is run,
 * without a shell, and killed after env->python_timeout_ms. */
#ifndef RV_CUDA_VENDOR_PYTHON_H
#define RV_CUDA_VENDOR_PYTHON_H

#include "kernels/cuda/vendor/places.h"

/* Adds the package folders of env->python, or else of the first python3 or python in env->path; none where there is no
 * interpreter. */
void python_package_folders(struct place_list *out, const struct vendor_environment *env);
/* Returns whether RIVULET_PYTHON is set and names no program. */
bool python_is_misnamed(const struct vendor_environment *env);

#endif
