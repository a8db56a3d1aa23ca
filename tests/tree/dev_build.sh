#!/usr/bin/env bash
# dev_build.sh DEV: what `./dev build` does where the CUDA plugin does not compile: it warns with the
# compiler's first error and succeeds; with --cuda it fails; and that it shows how far it is. CMake is
# a stand-in.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$1" "$work/dev"
mkdir "$work/bin"
cat >"$work/bin/cmake" <<'CMAKE'
#!/bin/sh
mkdir -p build/release/bin
echo RV_CUDA_PLUGIN:INTERNAL=ON >build/release/CMakeCache.txt
case "$*" in
--build*) echo '[1/345] Building C object base/x.c.o' ;;
esac
case "$*" in
*rivulet_cuda*)
	[ "${PLUGIN:-}" = fails ] || exit 0
	echo 'step.cu(7): warning: unused'
	echo 'step.cu(12): error: identifier "no_such" is undefined'
	echo 'step.cu(13): error: more'
	exit 1
	;;
esac
CMAKE
printf '#!/bin/sh\nprintf installed\n' >"$work/bin/dpkg-query"
chmod +x "$work/bin/"*
export PATH=$work/bin:$PATH

# check WHAT STATUS WORDS ARGS...: `./dev build ARGS` ends so and prints the words.
check() {
	local what=$1 want=$2 words=$3 status=0 said
	shift 3
	said=$("$work/dev" build "$@" 2>&1) || status=$?
	if [ "$status" != "$want" ] || ! grep -qF -- "$words" <<<"$said"; then
		printf 'FAILED: %s: status %s, not "%s" in:\n%s\n' "$what" "$status" "$words" "$said"
		exit 1
	fi
}

check "how far it is" 0 'Building release: 345 steps'
check "a plugin that builds" 0 'bin/librivulet_cuda.so'
export PLUGIN=fails
check "a plugin that does not" 0 'does not build: step.cu(12): error: identifier "no_such" is undefined; everything runs on the CPU'
check "where it is asked for" 1 'no CUDA plugin: it does not build: step.cu(12): error' --cuda
check "another option" 1 'the only option is --cuda' --gpu
echo "ok: dev build"
