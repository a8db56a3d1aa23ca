#!/usr/bin/env bash
# reproducible.sh PACKAGES: the same commit, built anew in another directory, gives the packages that
# are there, byte for byte; also where the environment asks for ccache, which would change the paths
# in the programs. Run from the top of the sources.
set -euo pipefail
packages=$(readlink -f "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/rv-again.XXXXXX")
trap 'rm -rf "$work"' EXIT
git diff --quiet HEAD -- || {
	printf 'SKIPPED: files were changed since the commit\n'
	exit 77
}
git clone -q . "$work/a-longer-name-than-before"
options=(--no-cuda)
[ -z "$(find "$packages" -name 'rivulet-cuda_*')" ] || options=()
! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
"$work/a-longer-name-than-before/packaging/make.sh" "$work/out" "${options[@]}" >"$work/log" 2>&1 || {
	tail -n 20 "$work/log"
	exit 1
}
diff "$packages/SHA256SUMS" "$work/out/SHA256SUMS" || {
	printf 'FAILED: other bytes\n'
	exit 1
}
printf 'ok: reproducible\n'
