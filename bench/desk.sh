#!/usr/bin/env bash
# desk.sh: training with several threads on an idle machine, and on one with another program on
# every processor, by how threads wait for each other (kernels/wait_policy.h): milliseconds of an
# inner step, and ratios to sleeping at once, all in one run, in turns.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: bench/desk.sh [--policies LIST] [--steps N] [--turns N] [--models LIST]

  --policies  of: passive (what the programs choose), libgomp (what it does by itself), or a spin count (default: passive,3000,libgomp)
  --models    WIDTH:LAYERS:BATCH,... (default: 64:2:4,256:4:4)
  --steps     inner steps of a measurement (default: 60)     --turns  default: 2

RIVULET_BIN: where the programs are.
USAGE
}

fail() {
	printf 'desk: %s\n' "$*" >&2
	exit 1
}

policies=passive,3000,libgomp models=64:2:4,256:4:4 steps=60 turns=2
while (($#)); do
	case $1 in
	--policies | --models | --steps | --turns)
		[ $# -ge 2 ] || fail "$1 needs a value"
		printf -v "${1#--}" %s "$2"
		shift 2
		;;
	-h | --help) usage && exit 0 ;;
	*) usage >&2 && fail "unknown option '$1'" ;;
	esac
done

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${RIVULET_BIN:-$top/build/release/bin}
[ -x "$bin/rivulet" ] || fail "$bin/rivulet is missing: build first, or set RIVULET_BIN"
dir=$(mktemp -d /tmp/rivulet-desk.XXXXXX)
others=()

end_others() {
	[ ${#others[@]} = 0 ] || kill "${others[@]}" 2>/dev/null || :
	wait 2>/dev/null || :
	others=()
}
trap 'end_others; rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
seq 1 140000 >"$dir/text"

begin_others() { # something else on every processor
	local i
	for ((i = 0; i < $(nproc); i++)); do
		(while :; do :; done) &
		others+=($!)
	done
}

measure() { # POLICY WIDTH LAYERS BATCH: the compute of the rounds after the first, per step, in ms
	local settings=()
	case $1 in
	passive) ;;
	libgomp) settings=(GOMP_SPINCOUNT=300000) ;;
	*) settings=("GOMP_SPINCOUNT=$1") ;;
	esac
	rm -rf "$dir/run"
	env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT "${settings[@]}" timeout 120 "$bin/rivulet" train --data "$dir/text" --workers 1 --threads "$(nproc)" \
		--n-embd "$2" --n-head 4 --n-layer "$3" --batch "$4" --context 64 --rounds 3 --steps-per-round "$((steps / 2))" --eval-every 0 --save-every 1000 \
		--out "$dir/run" >"$dir/log" 2>&1 || fail "the lab failed: $(tail -n 2 "$dir/log")"
	python3 - "$dir/run" "$((steps / 2))" <<'PYTHON'
import glob, json, sys
lines = [json.loads(l) for f in glob.glob(sys.argv[1] + "/**/metrics.jsonl", recursive=True) for l in open(f)]
rounds = [l["compute_us"] for l in lines if l["kind"] == "round"][1:]
print(sum(rounds) / len(rounds) / int(sys.argv[2]) * 1e-3)
PYTHON
}

for model in ${models//,/ }; do
	IFS=: read -r width layers batch <<<"$model"
	for ((turn = 0; turn < turns; turn++)); do
		for machine in idle busy; do
			[ $machine = idle ] || begin_others
			for policy in ${policies//,/ }; do
				ms=$(measure "$policy" "$width" "$layers" "$batch")
				printf '%s %s %s %s\n' "$model" "$machine" "$policy" "$ms" >>"$dir/results"
			done
			end_others
		done
	done
done
python3 - "$dir/results" <<'PYTHON'
import json, statistics, sys
got = {}
for line in open(sys.argv[1]):
    model, machine, policy, ms = line.split()
    got.setdefault((model, machine), {}).setdefault(policy, []).append(float(ms))
for (model, machine), by in got.items():
    ms = {p: round(statistics.median(v), 3) for p, v in by.items()}
    base = ms.get("passive")
    print(json.dumps({"bench": "desk", "model": model, "machine": machine, "step_ms": ms,
                      "of_passive": {p: round(v / base, 3) for p, v in ms.items()} if base else None}))
PYTHON
