#!/usr/bin/env bash
# completions.sh SHELL DIR: the scripts DIR/*.SHELL are accepted by that shell, and offer what they
# must.
set -euo pipefail
. "$(dirname "$0")/skip.sh"
shell=$1 dir=$2
needs "$shell"

# expect WORDS FOUND WHAT...: each of WHAT is a line of FOUND.
expect() {
	local words=$1 found=$2 what
	shift 2
	for what; do
		grep -qxF -- "$what" <<<"$found" || {
			printf '%s: after "%s" %s is not offered, but:\n%s\n' "$shell" "$words" "$what" "$found"
			exit 1
		}
	done
}

# offered LINE: what the shell offers at the end of the command line, one a line.
offered_bash() {
	bash -c '
		. "$1/${2%% *}.bash"
		read -r -a COMP_WORDS <<<"$2"
		[ "${2: -1}" != " " ] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		"_${COMP_WORDS[0]//-/_}" 2>/dev/null
		printf "%s\n" "${COMPREPLY[@]}"' - "$dir" "$1"
}
offered_fish() {
	fish --no-config -c 'source "$argv[1]/"(string split " " -- $argv[2])[1].fish; complete -C $argv[2] | string replace -r "\t.*" ""' \
		"$dir" "$1"
}
# zsh completes only in a terminal: _arguments is replaced by one that prints what it is given.
offered_zsh() {
	zsh -f -c '
		_arguments() { local a; for a; do print -r -- "${${a%%\[*}%%:*}"; case $a in *:\(*) print -rl -- ${=${${a##*:\(}%\)}} ;; esac; done }
		_describe() { local a; for a in ${(P)2}; do print -r -- "${a%%:*}"; done }
		words=(${(s: :)2}) CURRENT=$((${#words} + 1))
		source "$1/$words[1].zsh"' - "$dir" "$1"
}

for script in "$dir"/*."$shell"; do
	"$shell" -n "$script"
done
case $shell in
zsh) late= ;;
*) late='--recompute ' ;;
esac
expect 'rivulet-worker --' "$("offered_$shell" 'rivulet-worker --')" --dir --max-up --map-port --no-map-port --config --help
expect "rivulet-worker $late" "$("offered_$shell" "rivulet-worker $late")" auto none block
expect 'rivulet-coordinator ' "$("offered_$shell" 'rivulet-coordinator ')" serve invite status
expect 'rivulet-coordinator serve --' "$("offered_$shell" 'rivulet-coordinator serve --')" --listen --advertise --no-relay
expect 'rivulet train --' "$("offered_$shell" 'rivulet train --')" --method --data
printf 'ok: %s\n' "$shell"
