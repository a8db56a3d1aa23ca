#!/usr/bin/env bash
# make.sh OUT [--key FILE] [--no-cuda]: makes all packages of this commit in OUT, and SHA256SUMS,
# signed with --key. The same commit and the same installed libraries give the same bytes, wherever
# the sources lie. `./dev package` runs it.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
source=$(dirname "$here")
. "$here/version.sh"

die() {
	printf 'package: %s\n' "$*" >&2
	exit 1
}

# run LOG COMMAND...: quiet unless it fails.
run() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 || {
		tail -n 30 "$log" >&2
		die "${*:1:3} failed; its full output is in $log"
	}
}

out= key= nvcc=-URV_NVCC nvrtc=-DRV_CUDA_NVRTC=$source/.cache/cuda-12
while [ $# -gt 0 ]; do
	case $1 in
	--key)
		[ -f "${2:-}" ] || die "--key ${2:-}: no such file; rivulet-release new-key FILE makes one"
		key=$(readlink -f "$2")
		shift
		;;
	--no-cuda) nvcc=-DRV_NVCC= nvrtc=-DRV_CUDA_NVRTC= ;;
	-*) die "$1: the options are --key FILE and --no-cuda" ;;
	*) out=$1 ;;
	esac
	shift
done
[ -n "$out" ] || die "needs the folder to make them in"
mkdir -p "$out"
out=$(readlink -f "$out")

read_version "$source"
export SOURCE_DATE_EPOCH=$package_epoch LC_ALL=C TZ=UTC
# ccache writes paths of sources anew (CCACHE_BASEDIR), before the compiler maps them, and they end
# in error texts: what is shipped comes from the compiler itself.
export CCACHE_DISABLE=1
umask 022
cd "$source"
build=$source/build/package
mkdir -p "$build"
rm -f "$out"/rivulet* "$out"/SHA256SUMS*

printf 'package: %s\n' "$package_version"
run "$build/configure.log" cmake --preset package -DCMAKE_C_COMPILER_LAUNCHER= "-DRV_PACKAGE_VERSION=$package_version" "$nvcc" "$nvrtc"
targets=(rivulet rivulet-coordinator rivulet-worker rivulet-release)
if grep -q '^RV_CUDA_PLUGIN:INTERNAL=ON' "$build/CMakeCache.txt"; then
	targets+=(rivulet_cuda)
else
	rm -f "$build/bin/librivulet_cuda.so"
	printf 'package: no rivulet-cuda: %s\n' "$(sed -n 's/^RV_CUDA_PLUGIN_WHY_NOT:INTERNAL=//p' "$build/CMakeCache.txt")"
fi
run "$build/build.log" cmake --build "$build" -j "$(nproc)" --target "${targets[@]}"
said=$("$build/bin/rivulet-worker" --version)
[ "$said" = "rivulet-worker $program_version" ] || die "the program says \"$said\", the packages would say $program_version"

rm -rf "$build/debs"
run "$build/cpack.log" cpack --config "$build/CPackConfig.cmake" -B "$build/debs"
mv "$build"/debs/*.deb "$out"
"$here/portable/make.sh" "$build" "$package_version" "$out"
python3 -B "$here/oci/make.py" --tree "$build/portable/rivulet-worker-$package_version" --version "$package_version" \
	--out "$out/rivulet-worker-$package_version-oci-x86_64.tar"

cd "$out"
sha256sum rivulet* >SHA256SUMS
if [ -n "$key" ]; then
	"$build/bin/rivulet-release" sign SHA256SUMS --key "$key" --comment "rivulet $program_version"
else
	printf 'package: SHA256SUMS is not signed: --key FILE names the release key\n'
fi
du -b rivulet* | awk '{ printf "%10d bytes  %s\n", $1, $2 }'
