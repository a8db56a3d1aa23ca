#!/usr/bin/env bash
# hardened.sh PACKAGES: the programs and plugins in the packages have what tests/tree/hardened.py looks
# for. Run from the top of the sources.
set -euo pipefail
for tool in dpkg-deb readelf python3; do
	command -v "$tool" >/dev/null || {
		printf 'SKIPPED: %s is not installed\n' "$tool"
		exit 77
	}
done
work=$(mktemp -d "${TMPDIR:-/tmp}/rv-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
for package in "$1"/*.deb; do
	dpkg-deb -x "$package" "$work/$(basename "$package" .deb)"
done
mkdir "$work/portable"
tar -C "$work/portable" --strip-components=1 -xf "$1"/rivulet-worker-*-linux-x86_64.tar.xz
# Of the tarball only what is ours: its libraries and its loader, in libexec/, are Debian's, and bin/
# is the launcher, a static program that starts the worker.
mapfile -t ours < <(find "$work" -type f \( -name 'rivulet*' -o -name 'librivulet*.so' \) -not -path '*/portable/bin/*' \
	-not -path '*/portable/libexec/*' \
	-exec sh -c 'for f; do head -c 4 "$f" | grep -q ELF && printf "%s\n" "$f"; done' sh {} +)
[ "${#ours[@]}" -ge 4 ] || { printf 'FAILED: only %d programs in the packages\n' "${#ours[@]}" && exit 1; }
python3 -B tests/tree/hardened.py "${ours[@]}"
printf 'ok: hardened: %d programs and plugins\n' "${#ours[@]}"
