#!/usr/bin/env bash
# smoke.sh PATTERN PROGRAM ARGS...: a benchmark with tiny shapes ends well and prints a figure: a line
# that matches PATTERN. What the figure is does not matter here.
set -euo pipefail
pattern=$1
shift
status=0
said=$("$@") || status=$?
if [ "$status" != 0 ] || ! grep -qE -- "$pattern" <<<"$said"; then
	printf '%s\nFAILED: %s: status %s, and a line "%s" must be printed\n' "$said" "$*" "$status" "$pattern"
	exit 1
fi
