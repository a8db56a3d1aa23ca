#!/usr/bin/env bash
# moments.sh [STEPS]: held-out loss with Adam's moments in 8 bits against fp32, on real text (perl's
# documentation), three seeds, on the processor. The runs of a seed read the same sequences from the
# same first weights. Prints one line for each run and the differences; some 20 minutes on two cores.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rivulet=${RIVULET_BIN:-$top/build/release/bin}/rivulet
steps=${1:-1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$top/lab/perl_doc.sh" "$work/text.txt"
train() { # SEED MOMENTS
	"$rivulet" train --method ddp --workers 1 --data "$work/text.txt" --out "$work/$1-$2" --n-layer 2 --n-head 4 \
		--n-embd 128 --context 128 --batch 8 --lr 1e-3 --warmup-steps 100 --steps-per-round 100 --rounds $((steps / 100)) \
		--dtype fp32 --seed "$1" --moments "$2" --eval-every 0 --eval-tokens 500000 --threads 1 >/dev/null 2>&1
	grep '"kind":"eval"' "$work/$1-$2/metrics.jsonl" | tail -1 | sed 's/.*"loss":\([0-9.]*\).*/\1/'
}
for seed in 1 2 3; do
	for moments in fp32 int8; do
		train "$seed" "$moments" >"$work/loss-$seed-$moments"
		echo "seed $seed, moments $moments: held-out loss $(<"$work/loss-$seed-$moments")"
	done
done
for seed in 1 2 3; do
	echo "$(<"$work/loss-$seed-fp32") $(<"$work/loss-$seed-int8")"
done | awk '{ d = 100 * ($2 / $1 - 1); sum += d; printf "seed %d: %+.3f %%\n", NR, d } END { printf "mean: %+.3f %%\n", sum / NR }'
