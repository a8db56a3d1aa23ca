# demo_progress.sh: one line of progress with the time left through all stages of a demo; off a
# terminal JSON lines. Sourced.
#
# `stages` are the names in order, `expected_ms[NAME]` how long each is expected to take; both may
# be set as more is known.

live=no
[ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && live=yes
declare -A expected_ms
stages=() stage='' stage_number=0 stage_began_ms=0 began_ms=0 shown_percent=-1 most_percent=0

now_ms() { # -> $now
	now=$((10#${EPOCHREALTIME//[!0-9]/} / 1000))
}

json_value() { # TEXT: a number as it is, all else as a string
	if [[ $1 =~ ^-?[0-9]+(\.[0-9]+)?$ ]]; then
		printf %s "$1"
	else
		local text=${1//\\/\\\\}
		text=${text//\"/\\\"}
		printf '"%s"' "${text//[$'\001'-$'\037']/ }"
	fi
}

# Reports an event: to people the text, above the line of progress; off a terminal one JSON line
# with the fields.
tell() { # EVENT TEXT [KEY VALUE]...
	local event=$1 text=$2 line
	shift 2
	if [ "$live" = yes ]; then
		printf '\r\033[K%s\n' "$text"
		return
	fi
	line='{"event":"'$event'"'
	while (($# > 1)); do
		line+=",\"$1\":$(json_value "$2")"
		shift 2
	done
	printf '%s,"text":%s}\n' "$line" "$(json_value "$text")" # at once: who reads along sees whole lines
}

begin_stage() { # NAME
	local i
	now_ms
	stage=$1 stage_began_ms=$now
	((began_ms > 0)) || began_ms=$now
	for i in "${!stages[@]}"; do [ "${stages[i]}" != "$1" ] || stage_number=$((i + 1)); done
	[ "$live" = yes ] || tell stage "$1" stage "$1" number "$stage_number" of "${#stages[@]}"
	show_progress 0
}

# Estimates the rest of the run: of this stage by its own pace once that shows, of the later ones as
# expected, scaled by this one's pace.
find_left() { # PERMILLE of the stage that is done -> $left_ms
	local done=$1 spent expected=${expected_ms[$stage]:-0} i later=0
	now_ms
	spent=$((now - stage_began_ms))
	for ((i = stage_number; i < ${#stages[@]}; i++)); do later=$((later + ${expected_ms[${stages[i]}]:-0})); done
	if ((done >= 50 && spent >= 2000 && expected > 0)); then
		left_ms=$((spent * (1000 - done) / done + later * (spent * 1000 / done) / expected))
	else
		left_ms=$((expected > spent ? expected - spent + later : later))
	fi
}

show_progress() { # PERMILLE of the stage [NOTE]
	local percent line columns
	find_left "$1"
	percent=$(((now - began_ms) * 100 / (now - began_ms + left_ms + 1)))
	((percent >= most_percent)) || percent=$most_percent # what takes longer than was thought holds it, and the time left grows
	most_percent=$percent
	if [ "$live" = no ]; then
		((percent / 5 == shown_percent / 5)) && return
		shown_percent=$percent
		tell progress "$percent %" stage "$stage" percent "$percent" left_s "$(((left_ms + 500) / 1000))" note "${2:-}"
		return
	fi
	printf -v line '[%d/%d %s] %d %%  %d:%02d left%s' "$stage_number" "${#stages[@]}" "$stage" "$percent" \
		$((left_ms / 60000)) $((left_ms / 1000 % 60)) "${2:+  $2}"
	columns=$(stty size 2>/dev/null <&1 | cut -d ' ' -f 2) || columns=''
	((${columns:-0} > 1)) || columns=80
	printf '\r%s\033[K' "${line:0:columns-1}"
}

end_progress() {
	[ "$live" = no ] || printf '\r\033[K'
}
