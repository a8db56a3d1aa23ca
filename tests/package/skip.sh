# skip.sh: for the scripts of this folder: a test whose judge is not installed is skipped, and says so.
# shellcheck shell=bash
needs() {
	command -v "$1" >/dev/null || {
		printf 'SKIPPED: %s is not installed (apt-get install %s)\n' "$1" "${2:-$1}"
		exit 77
	}
}
