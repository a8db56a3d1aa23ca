#!/bin/sh
# build_plugin.sh SOURCE BUILD NVCC: makes the plugin that ships, upon the driver and by NVRTC, for
# one card and as PTX, where NVRTC 12 is not installed but a CUDA toolkit has its own: some 20 s of
# processor time, in a build tree of its own. It says that it is of CUDA 12, as the one that ships:
# what the tests look at (names of kernels, what launches them, local memory) is the same.
# Status 77: the toolkit has no NVRTC.
set -eu
source=$1 build=$2
toolkit=$(dirname "$(dirname "$(readlink -f "$3")")")
for libraries in "$toolkit/lib64" "$toolkit/lib" none; do
	set -- "$libraries"/libnvrtc-builtins.so.*
	[ ! -e "$1" ] || break
done
if [ "$libraries" = none ] || [ ! -e "$toolkit/include/cuda_bf16.h" ]; then
	echo "skipped: $toolkit has no NVRTC"
	exit 77
fi
# As the packages of PyPI lie.
mkdir -p "$build/nvrtc/nvidia/cuda_nvrtc" "$build/nvrtc/nvidia/cuda_runtime"
ln -sfn "$libraries" "$build/nvrtc/nvidia/cuda_nvrtc/lib"
ln -sfn "$toolkit/include" "$build/nvrtc/nvidia/cuda_runtime/include"
if ! cmake -S "$source" -B "$build/tree" -G Ninja -DRV_TESTS=OFF -DRV_BENCH=OFF -DRV_CUDA_NVRTC="$build/nvrtc" \
	-DRV_CUDA_SAYS_VERSION=12000 "-DRV_CUDA_ARCHITECTURES=80-real;80-virtual" >"$build/log" 2>&1 ||
	! cmake --build "$build/tree" --target rivulet_cuda >"$build/log" 2>&1; then
	tail -n 30 "$build/log"
	exit 1
fi
