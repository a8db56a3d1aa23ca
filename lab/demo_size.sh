# demo_size.sh: how many rounds of the demo fit into the time that it is to take on this machine, by
# timing a few. Sourced.

readonly full_rounds=80 least_rounds=24
# Time of a round beside its steps, in percent of these: evaluations, and with real workers
# encoding, exchange, commit.
readonly workers_over=120 baseline_over=110
readonly fixed_ms=9000 # starting and joining, the report, the sample

# Trains three rounds of a few steps as the demo will; the first is not counted. More steps if that
# was too quick.
time_step() { # NAME ARGS... -> $step_us: wall time of an inner step of all workers together
	local name=$1 dir=$out/calibration/$1 steps=4 walls
	shift
	while :; do
		rm -rf "$dir"
		start "$out/calibration-$name.log" "$bin/rivulet" train --config "$out/run.conf" --data "$text" --out "$dir" --name "$name" \
			--rounds 3 --steps-per-round "$steps" --eval-every 0 --eval-tokens 64 --save-every 1000 "$@"
		follow "$started_pid" || fail "timing a few steps failed: $(tail -n 3 "$out/calibration-$name.log")"
		mapfile -t walls < <(sed -n 's/.*"kind":"round".*"wall_us":\([0-9]*\).*/\1/p' "$dir/metrics.jsonl")
		((${#walls[@]} == 3)) || fail "timing a few steps gave no record: $dir/metrics.jsonl"
		step_us=$(((walls[2] - walls[0]) / (2 * steps)))
		((steps == 4 && walls[2] - walls[0] < 1000000)) || break
		steps=$((1000000 / (step_us + 1) + 4))
	done
	rm -rf "$dir"
}

# Times steps of four workers side by side and of data-parallel training, as both will run here.
calibrate() { # -> $workers_us, $parallel_us
	local step_us
	mkdir -p "$out/calibration"
	time_step workers --method diloco --workers "$workers" --threads 1
	workers_us=$step_us
	parallel_us=0
	if [ "$baselines" = yes ]; then
		time_step data-parallel --method ddp --workers "$workers"
		parallel_us=$step_us
	fi
	rmdir "$out/calibration"
}

guess_stages() { # before anything is timed: that it takes as long as it may
	local all_ms=$((minutes * 60000))
	expected_ms[text]=500 expected_ms[size]=8000 expected_ms[report]=3000
	expected_ms[workers]=$((all_ms * 45 / 100)) expected_ms["data-parallel"]=$((all_ms * 42 / 100))
	expected_ms["one-worker"]=$((all_ms * 11 / 100))
}

expect_stages() { # what each stage takes, for $rounds
	expected_ms[workers]=$((rounds * steps * workers_us / 1000 * workers_over / 100 + fixed_ms * 2 / 3))
	expected_ms["data-parallel"]=$((rounds * steps * parallel_us / 1000 * baseline_over / 100))
	expected_ms["one-worker"]=$((rounds * steps * parallel_us / workers / 1000 * baseline_over / 100))
	expected_ms[report]=$((fixed_ms / 3))
	total_ms=$((${expected_ms[workers]} + ${expected_ms["data-parallel"]} + ${expected_ms["one-worker"]} + ${expected_ms[report]}))
}

# Scales the rounds, never H: bytes, batch and comparisons stay the same, and all runs see the same
# tokens.
choose_rounds() { # -> $rounds, where none was asked for
	local budget_ms=$((minutes * 60000 - fixed_ms)) round_us
	asked=yes
	[ -z "$rounds" ] || return 0
	asked=no
	round_us=$((steps * workers_us * workers_over / 100 + steps * parallel_us * (workers + 1) / workers * baseline_over / 100))
	rounds=$((budget_ms * 1000 / (round_us + 1)))
	((rounds <= full_rounds)) || rounds=$full_rounds
	((rounds >= least_rounds)) || rounds=$least_rounds
}

minutes_text() { # MS
	printf '%d:%02d min' $(($1 / 60000)) $(($1 / 1000 % 60))
}

tell_size() {
	local speed=$((workers * tokens_per_step * 1000000 / (workers_us + 1))) what
	printf -v what '%d rounds, %d tokens, about %s on this machine (%d tokens/s)' "$rounds" $((rounds * steps * workers * tokens_per_step)) \
		"$(minutes_text "$total_ms")" "$speed"
	if [ "$asked" = yes ]; then
		what="Size: as asked for: $what"
	elif ((rounds == full_rounds)); then
		what="Size: full: $what"
	elif ((rounds > least_rounds)); then
		what="Size: smaller, for this machine: $what; the README's digits are of $full_rounds rounds (--rounds $full_rounds)"
	else
		what="Size: the least that is worth comparing, and this machine needs longer than $minutes min for it: $what; the README's digits are of $full_rounds rounds"
	fi
	tell size "$what" rounds "$rounds" full_rounds "$full_rounds" tokens $((rounds * steps * workers * tokens_per_step)) \
		expected_s $((total_ms / 1000)) tokens_per_s "$speed" workers_step_us "$workers_us" parallel_step_us "$parallel_us"
}
