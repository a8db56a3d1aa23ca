#!/usr/bin/env bash
# manual.sh DIR: mandoc finds nothing to warn of in the pages DIR/*.1.gz, and the index of manual
# pages finds a line for each.
set -euo pipefail
. "$(dirname "$0")/skip.sh"
needs mandoc
status=0
for page in "$1"/*.1.gz; do
	said=$(zcat "$page" | mandoc -Tlint -W warning) || true
	if [ -n "$said" ]; then
		printf '%s:\n%s\n' "$page" "$said"
		status=1
	fi
	name=$(basename "$page" .1.gz)
	shown=$(zcat "$page" | mandoc -Tascii | col -b)
	for words in "$name - " '--config FILE' 'EXIT STATUS' 'default: '; do
		grep -qF -- "$words" <<<"$shown" || {
			printf '%s does not show "%s"\n' "$page" "$words"
			status=1
		}
	done
done
exit "$status"
