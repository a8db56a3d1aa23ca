#!/usr/bin/env bash
# demo.sh: the main job on this one machine, exactly as it would run on five: a coordinator and four
# workers, each with its own key and directory and nothing else but a link, joined only by HTTPS and
# mutual TLS on loopback. Then as many tokens in one process, data-parallel, and one worker alone with a quarter
# of them; a table, a sample of text, and report.html. demo_size.sh fits it to the machine,
# demo_progress.sh shows its progress.
#
# Called by `./dev demo`, which has built the programs. Leaves no process behind, however it ends.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/demo_progress.sh"
. "$here/demo_size.sh"
readonly tokens_per_step=$((8 * 64)) # of the default model: batch x context

usage() {
	cat <<'USAGE'
usage: ./dev demo [--data PATH|URL#sha256=HEX] [--out DIR] [--port N] [--workers N] [--minutes N | --rounds N] [--steps N]
                  [--no-baselines]

Trains a byte-level GPT on real text with four workers over TLS on loopback, then compares.

  --data     a text file, a directory of text files, or https://URL#sha256=HEX
             (default: the Perl documentation of Debian 12, 206 files known by their hashes)
  --out      where everything goes (default: runs/demo; the demo there becomes runs/demo.previous, in place of an older one)
  --port     the coordinator's port on 127.0.0.1 (default: 0, any free one)
  --workers  1..16 (default 4)
  --minutes  about how long it may take here (default 5): a few timed steps decide how many of the 80 rounds fit, at least 24
  --rounds   1..1000 of them, however long that takes; 80 gives the README's digits
  --steps    inner steps H per round (default 30)
  --no-baselines   only the distributed run: no data-parallel and single-worker comparison
USAGE
}

fail() {
	end_progress
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

need_number() { # NAME MIN MAX: checks the variable of that name, and makes its text a plain decimal number
	local value=${!1}
	[[ $value =~ ^[0-9]{1,9}$ ]] && ((10#$value >= $2 && 10#$value <= $3)) ||
		fail "--$1 $value: must be a whole number from $2 to $3"
	printf -v "$1" %d "$((10#$value))"
}

parse_options() {
	data='' out=$top/runs/demo port=0 workers=4 rounds='' minutes=5 steps=30 baselines=yes shares_text=
	while (($#)); do
		case $1 in
		--data | --out | --port | --workers | --rounds | --minutes | --steps)
			[ -n "${2:-}" ] || fail "$1 needs a value"
			printf -v "${1#--}" %s "$2"
			shift 2
			;;
		--no-baselines) baselines=no && shift ;;
		-h | --help) usage && exit 0 ;;
		*) usage >&2 && fail "unknown option '$1'" ;;
		esac
	done
	need_number port 0 65535
	need_number workers 1 16
	[ -z "$rounds" ] || need_number rounds 1 1000
	need_number minutes 1 1440
	need_number steps 1 10000
}

# Everything this script starts is in `children`; the end of the script ends them: first by SIGTERM,
# so that they save. They run in sessions of their own: Ctrl-C reaches only this script, which
# signals them once.
children=()
start_split() { # OUT ERRORS COMMAND...: in the background, its pid in $started_pid
	setsid "${@:3}" >"$1" 2>"$2" &
	started_pid=$!
	children+=("$started_pid")
}

start() { # LOG COMMAND...: both outputs into one file
	setsid "${@:2}" >"$1" 2>&1 &
	started_pid=$!
	children+=("$started_pid")
}

finished() { # PID: waits for it and gives its exit status
	local status=0 pid left=()
	wait "$1" || status=$?
	for pid in "${children[@]}"; do [ "$pid" = "$1" ] || left+=("$pid"); done
	children=("${left[@]}")
	return "$status"
}

# Shows progress until the process ends; FUNCTION, if given, returns the done part of the stage.
follow() { # PID [FUNCTION]: its exit status
	while kill -0 "$1" 2>/dev/null; do
		if [ -n "${2:-}" ]; then "$2"; else show_progress 0; fi
		sleep 0.3
	done
	finished "$1"
}

any_alive() { # `return 0`, not `return`: in a trap that would be the status from before the trap
	local pid
	for pid in "${children[@]}"; do kill -0 "$pid" 2>/dev/null && return 0; done
	return 1
}

# Tells how to go on after Ctrl-C, once everything has ended: a line of text, and a command each.
tell_go_on() {
	local quoted i joined=0 report
	printf -v quoted %q "$out"
	report="$bin/rivulet report $quoted --out $quoted/report.html"
	for ((i = 0; i < workers; i++)); do [ ! -s "$out/worker$i/run.conf" ] || joined=$((joined + 1)); done
	if [ "$stage" = workers ] && ((joined == workers)); then
		tell stopped "Stopped; what was trained is saved in $out. These go on with the run (\`./dev demo\` begins a new one, and keeps this one as $out.previous):" out "$out"
		tell go_on "$bin/rivulet-coordinator serve --dir $quoted/coordinator &"
		tell go_on "for i in {0..$((workers - 1))}; do $bin/rivulet-worker --dir $quoted/worker\$i & done"
		tell go_on "$report    # once the workers have ended"
	elif [[ $stage =~ ^(data-parallel|one-worker|report)$ ]]; then
		tell stopped "Stopped; the run of the workers is complete in $out, and what comes after it is not. Its report:" out "$out"
		tell go_on "$report"
	else
		tell stopped "Stopped before the run began: nothing goes on from here; \`./dev demo\` begins anew." out "$out"
	fi
}

stopped=no
cleanup() {
	local status=$? pid
	trap - EXIT
	trap '' INT TERM HUP
	for pid in "${children[@]}"; do kill -TERM "$pid" 2>/dev/null || :; done
	for _ in $(seq 150); do
		any_alive || break
		sleep 0.1
	done
	for pid in "${children[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
	wait 2>/dev/null || :
	[ "$stopped" = no ] || tell_go_on
	exit "$status"
}
trap cleanup EXIT
trap 'end_progress; stopped=yes; printf "demo: stopping; running workers save their state in %s\n" "${out:-}" >&2; exit 130' INT
trap 'exit 143' TERM HUP

# Keeps an earlier demo there as OUT.previous; anything else is left alone.
prepare_out() {
	if [ -d "$out" ] && [ -n "$(ls -A "$out")" ]; then
		[ -f "$out/run.conf" ] && [ -d "$out/coordinator" ] ||
			fail "$out exists and is not an earlier demo: choose another directory with --out"
		exec {lock}<"$out"
		flock -n "$lock" || fail "a demo is running in $out: wait for its end, or choose another directory with --out"
		exec {lock}<&-
		rm -rf "$out.previous"
		mv "$out" "$out.previous"
	fi
	mkdir -p "$out" || fail "$out cannot be made: choose another directory with --out"
	exec {lock}<"$out" # for as long as this demo, or a process of it, runs
	flock -n "$lock" || fail "a demo has just begun in $out: choose another directory with --out"
	local free_kib
	free_kib=$(df -Pk "$out" | awk 'NR == 2 { print $4 }')
	((free_kib >= 400 * 1024)) || fail "$out: $((free_kib / 1024)) MiB are free and the demo needs 400: free some, or choose another disk with --out"
}

prepare_text() { # -> $text, $text_says
	local differ=()
	text=$data text_says=$data
	if [ -z "$data" ]; then
		text=$out/perl-doc.txt
		start "$out/text.log" "$top/lab/perl_doc.sh" "$text"
		follow "$started_pid" || fail "$(cat "$out/text.log")"
		text_says="the Perl documentation of Debian 12, $(tail -n 1 "$out/text.log")"
		[ ! -s "$text.differs" ] || mapfile -t differ <"$text.differs"
		((${#differ[@]} == 0)) || text_says+="; not the README's text: ${#differ[@]} files differ, first ${differ[0]}"
	fi
	# The run hands its text out to the workers; a text at a URL each of them fetches itself.
	run_text=(--data "$text") worker_text=() baseline_text=$out/coordinator/text
	[[ $text != *://* ]] || run_text=() worker_text=(--data "$text") baseline_text=$text shares_text=yes
	tell text "Text: $text_says" path "$text" sha256 "$(sed -n '$s/^sha256://p' "$out/text.log" 2>/dev/null)" differ "${differ[*]}"
}

start_coordinator() {
	"$bin/rivulet-coordinator" new-run --dir "$out/coordinator" --config "$out/run.conf" "${run_text[@]}" \
		>"$out/new-run.log" 2>&1 || fail "the run could not be made: $(tail -n 3 "$out/new-run.log")"
	start "$out/coordinator.log" "$bin/rivulet-coordinator" serve --dir "$out/coordinator" --listen "127.0.0.1:$port" \
		--text-up 0
	coordinator=$started_pid
	until [ -s "$out/coordinator/listen" ]; do
		kill -0 "$coordinator" 2>/dev/null || fail "the coordinator did not start: $(tail -n 3 "$out/coordinator.log")"
		sleep 0.1
	done
}

# Worker i joins before worker i+1 starts, so that member numbers, and with them what each reads,
# are the same every time.
start_workers() {
	local i links
	mapfile -t links < <("$bin/rivulet-coordinator" invite --dir "$out/coordinator" --count "$workers")
	[ "${#links[@]}" = "$workers" ] || fail "the coordinator gave no invite links; its log: $out/coordinator.log"
	for ((i = 0; i < workers; i++)); do
		start "$out/worker$i.log" "$bin/rivulet-worker" "${links[i]}" --yes --on-battery --on-metered --dir "$out/worker$i" "${worker_text[@]}" --threads 1 \
			--name "worker$i" --listen 127.0.0.1:0
		worker_pids[i]=$started_pid
		until [ -s "$out/worker$i/run.conf" ]; do
			check_worker "$i"
			kill -0 "${worker_pids[i]}" 2>/dev/null || [ -s "$out/worker$i/run.conf" ] ||
				fail "worker $i ended before it had joined: $(tail -n 3 "$out/worker$i.log")"
			sleep 0.05
		done
	done
}

check_worker() { # NUMBER: ends the demo when it is gone without having finished, or cannot write
	local log=$out/worker$1.log
	if ! kill -0 "${worker_pids[$1]}" 2>/dev/null; then
		wait "${worker_pids[$1]}" || fail "worker $1 failed: $(tail -n 3 "$log")"
	fi
	if grep -qs '"event":"storage"' "$log"; then
		fail "worker $1 cannot write to its disk: $(grep '"event":"storage"' "$log" | tail -n 1)"
	fi
}

# Shows the progress of a record: the newest round's line, as every process writes it.
show_record() { # DIRECTORY
	local line round loss tokens sent note=''
	line=$(tail -n 8 "$1/metrics.jsonl" 2>/dev/null | grep '"kind":"round"' | tail -n 1) || line=''
	[[ $line =~ \"round\":([0-9]+) ]] && round=${BASH_REMATCH[1]} || round=0
	[[ $line =~ \"tokens\":([0-9]+) ]] && tokens=${BASH_REMATCH[1]} || tokens=0
	[[ $line =~ \"bytes_sent\":([0-9]+) ]] && sent=${BASH_REMATCH[1]} || sent=0
	[[ $line =~ \"train_loss\":([0-9]+\.[0-9]{1,3}) ]] && loss=${BASH_REMATCH[1]} || loss='-'
	now_ms
	((round == 0)) || printf -v note 'round %d/%d  loss %s  %d tokens/s  %d MB sent' "$round" "$rounds" "$loss" \
		$((tokens * 1000 / (now - stage_began_ms + 1))) $((sent / 1000000))
	show_progress $((round * 1000 / rounds)) "$note"
}

watch_run() {
	local i n_left=$workers
	while ((n_left > 0)); do
		kill -0 "$coordinator" 2>/dev/null || fail "the coordinator ended: $(tail -n 3 "$out/coordinator.log")"
		n_left=0
		for ((i = 0; i < workers; i++)); do
			check_worker "$i"
			kill -0 "${worker_pids[i]}" 2>/dev/null && n_left=$((n_left + 1))
		done
		show_record "$out/worker0"
		sleep 0.3
	done
	for ((i = 0; i < workers; i++)); do
		finished "${worker_pids[i]}" || fail "worker $i failed: $(tail -n 3 "$out/worker$i.log")"
	done
	kill -TERM "$coordinator"
	finished "$coordinator" || fail "the coordinator failed: $(tail -n 3 "$out/coordinator.log")"
}

write_config() {
	cat >"$out/run.conf" <<CONF
# Text: $text_says
# The demo's run. Options not named here have their defaults: rivulet-coordinator new-run --help
# The default learning rate, outer learning rate and momentum were chosen on this text with
# holdout-every = 50. The demo is evaluated on other blocks, which no choice has used.
holdout-every = 47
rounds = ${rounds:-$full_rounds}
steps-per-round = $steps
min-workers = $workers
${shares_text:+data-shards = $workers}
CONF
}

# The same tokens, batch and seed in one process, data-parallel (averaging gradients at every step);
# or one worker alone.
run_baseline() { # NAME WORKERS
	begin_stage "$1"
	baseline=$out/$1
	start "$out/$1.log" "$bin/rivulet" train --config "$out/run.conf" --method ddp --data "$baseline_text" --workers "$2" --data-shards "$workers" --out "$baseline"
	follow "$started_pid" show_baseline || fail "the baseline failed: $(tail -n 3 "$out/$1.log")"
}

show_baseline() {
	show_record "$baseline"
}

finish() {
	begin_stage report
	start "$out/report.txt" "$bin/rivulet" report "$out" --out "$out/report.html"
	follow "$started_pid" || fail "the report failed: $(tail -n 3 "$out/report.txt")"
	start_split "$out/sample.txt" "$out/sample.log" "$bin/rivulet" sample "$out/worker0" --prompt 'You can use ' --tokens 400 --temperature 0.6 --seed 1
	follow "$started_pid" || fail "the sample failed: $(tail -n 3 "$out/sample.log")"
	end_progress
	cat "$out/report.txt"
	printf '\nA sample of what the shared model writes:\n\n'
	cat "$out/sample.txt"
	printf '\n\n'
}

tell_done() {
	local took_ms
	now_ms
	took_ms=$((now - began_ms))
	tell done "Done in $(minutes_text "$took_ms") (expected $(minutes_text $((sized_ms + total_ms)))), $rounds rounds. Pictures: $out/report.html" \
		took_s $((took_ms / 1000)) expected_s $(((sized_ms + total_ms) / 1000)) rounds "$rounds" report "$out/report.html"
}

size_the_run() {
	begin_stage size
	calibrate
	choose_rounds
	expect_stages
	write_config
	now_ms
	sized_ms=$((now - began_ms))
	tell_size
}

main() {
	top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
	bin=${RIVULET_BIN:-$top/build/release/bin}
	parse_options "$@"
	prepare_out
	worker_pids=()
	stages=(text size workers data-parallel one-worker report)
	[ "$baselines" = yes ] || stages=(text size workers report)
	guess_stages
	begin_stage text
	prepare_text
	write_config
	size_the_run
	start_coordinator
	tell started "$workers workers, H=$steps; dashboard while they run: https://$(cat "$out/coordinator/listen")/ (self-signed); all files: $out" \
		workers "$workers" steps_per_round "$steps" out "$out"
	begin_stage workers
	start_workers
	watch_run
	if [ "$baselines" = yes ]; then
		run_baseline data-parallel "$workers"
		run_baseline one-worker 1
	fi
	finish
	tell_done
}

main "$@"
