#!/bin/sh
# toolkit.sh SOURCE NVCC LIBRARY...: configures SOURCE as where the CUDA toolkit has none of the
# LIBRARYs (cublasLt, cudnn, nccl), and compiles the C files of the plugin. A header of these
# libraries that is included ends the compilation; CMake takes a library for missing whose place in
# the cache is OFF. The plugin must be a target all the same, for every card that nvcc knows of
# those in the list below, and its link line must name none of NVIDIA's libraries but the static
# runtime. toolkit.sh SOURCE OFF: the same where there is no nvcc: the programs can be built, and
# one line says why no plugin can. Changes nothing outside a temporary folder.
set -eu
source=$1 nvcc=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/log"
fail() {
	cat "$work/log"
	echo "$*"
	exit 1
}
mkdir "$work/missing"
options=
for library; do
	options="$options -DCUDA_${library}_LIBRARY=OFF"
	for header in "$library.h" "${library}_api.h" cublas_v2.h cudnn_graph.h cudnn_backend.h; do
		case $header in
		*cublas*) [ "$library" = cublasLt ] || continue ;;
		*cudnn*) [ "$library" = cudnn ] || continue ;;
		esac
		echo "#error \"a toolkit without $library has no $header\"" >"$work/missing/$header"
	done
done
# shellcheck disable=SC2086 # words
cmake -S "$source" -B "$work/build" -G Ninja -DRV_TESTS=OFF -DRV_BENCH=OFF -DRV_NVCC="$nvcc" -DRV_CUDA_NVRTC= \
	-DCMAKE_C_FLAGS="-I$work/missing" $options >"$work/log" 2>&1 || fail "the configuration failed"
if [ "$nvcc" = OFF ]; then
	[ "$(grep -c 'the CUDA plugin is not built' "$work/log")" -eq 1 ] || fail "not exactly one line says that there is no plugin"
	grep -q '^RV_CUDA_PLUGIN:INTERNAL=OFF' "$work/build/CMakeCache.txt" || fail "RV_CUDA_PLUGIN is not OFF"
	grep -q '^RV_CUDA_PLUGIN_WHY_NOT:INTERNAL=.*nvcc' "$work/build/CMakeCache.txt" || fail "the reason does not name nvcc"
	if grep -q 'librivulet_cuda\.so' "$work/build/build.ninja"; then
		fail "the build has the plugin as a target"
	fi
	grep -q '^build bin/rivulet-worker:' "$work/build/build.ninja" || fail "the build has no rivulet-worker"
	exit 0
fi
grep -q '^RV_CUDA_PLUGIN:INTERNAL=ON' "$work/build/CMakeCache.txt" || fail "the plugin cannot be built without: $*"
objects=$(ninja -C "$work/build" -t query bin/librivulet_cuda.so | grep -o 'kernels/cuda/[^ ]*\.c\.o')
[ "$(echo "$objects" | wc -l)" -ge 10 ] || fail "the plugin has only these C files: $objects"
# shellcheck disable=SC2086 # words
ninja -C "$work/build" -j2 $objects >"$work/log" 2>&1 || fail "without $* the plugin does not compile"
ninja -C "$work/build" -t commands bin/librivulet_cuda.so >"$work/commands"
for architecture in 80 86 89 90 120; do
	"$nvcc" --list-gpu-code | grep -qx "sm_$architecture" || continue
	grep -q "code=\[*sm_$architecture\]*" "$work/commands" || fail "the plugin has no machine code for sm_$architecture"
done
grep -q 'code=\[*compute_90\]*' "$work/commands" || fail "the plugin has no PTX for newer cards"
tail -n 1 "$work/commands" >"$work/log"
if grep -oE '(-l|/lib)(cu|nv|nccl)[A-Za-z_]*' "$work/log" | grep -vE 'cudart_static|cudadevrt'; then
	fail "the plugin is linked with a library of NVIDIA"
fi
