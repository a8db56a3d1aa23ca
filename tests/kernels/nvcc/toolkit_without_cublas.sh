#!/bin/sh
# toolkit_without_cublas.sh SOURCE NVCC: configures SOURCE as where the CUDA toolkit has no cuBLAS: CMake takes a library
# for missing whose place in the cache is OFF. The configuration must succeed, say once why there is no plugin, and have
# no target for it. Changes nothing outside a temporary folder.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/log"
fail() {
	cat "$work/log"
	echo "$*"
	exit 1
}
cmake -S "$1" -B "$work/build" -G Ninja -DRV_TESTS=OFF -DRV_BENCH=OFF -DRV_NVCC="$2" -DCUDA_cublasLt_LIBRARY=OFF \
	>"$work/log" 2>&1 || fail "the configuration failed"
[ "$(grep -c 'the CUDA plugin is not built' "$work/log")" -eq 1 ] || fail "not exactly one line says that there is no plugin"
grep -q '^RV_CUDA_PLUGIN:INTERNAL=OFF' "$work/build/CMakeCache.txt" || fail "RV_CUDA_PLUGIN is not OFF"
grep '^RV_CUDA_PLUGIN_WHY_NOT:INTERNAL=.*cublasLt' "$work/build/CMakeCache.txt" || fail "the reason does not name cuBLASLt"
if grep -q 'librivulet_cuda\.so' "$work/build/build.ninja"; then
	fail "the build has the plugin as a target"
fi
