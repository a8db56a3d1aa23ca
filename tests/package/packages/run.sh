#!/usr/bin/env bash
# run.sh PACKAGES: runs every script of this folder on the packages, and counts. `./dev package
# --test` calls it, from the top of the sources.
set -euo pipefail
n_failed=0 n_skipped=0 n_passed=0
for name in lint hardened deb tarball image reproducible; do
	status=0
	began=$SECONDS
	"tests/package/packages/$name.sh" "$1" || status=$?
	printf '== %s: status %d, %d s\n' "$name" "$status" $((SECONDS - began))
	case $status in
	0) n_passed=$((n_passed + 1)) ;;
	77) n_skipped=$((n_skipped + 1)) ;;
	*) n_failed=$((n_failed + 1)) ;;
	esac
done
printf '%d passed, %d skipped, %d failed\n' "$n_passed" "$n_skipped" "$n_failed"
[ "$n_failed" -eq 0 ]
