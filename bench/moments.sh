#!/usr/bin/env bash
# moments.sh [STEPS]: held-out loss with Adam's moments in 8 bits against fp32, on real text (perl's
# documentation), three seeds, on one thread of the processor. The runs of a seed read the same
# sequences from the same first weights. Prints after each tenth of STEPS (a multiple of 10) both
# losses of a seed and by how much 8 bits are above, and at the end the mean of the seeds; some 40
# minutes of one core. MOMENTS_OUT: a folder for the losses, in which a second call goes on.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rivulet=${RIVULET_BIN:-$top/build/release/bin}/rivulet
steps=${1:-1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${MOMENTS_OUT:-$work}
"$top/lab/perl_doc.sh" "$work/text.txt"
train() { # SEED MOMENTS
	[ -s "$out/$1-$2.losses" ] && return
	"$rivulet" train --method ddp --workers 1 --data "$work/text.txt" --out "$work/$1-$2" --n-layer 2 --n-head 4 \
		--n-embd 128 --context 128 --batch 8 --lr 1e-3 --warmup-steps 100 --steps-per-round $((steps / 10)) --rounds 10 \
		--dtype fp32 --seed "$1" --moments "$2" --eval-every 1 --eval-tokens 500000 --threads 1 >"$work/log" 2>&1 ||
		{ tail -3 "$work/log" >&2 && exit 1; }
	sed -n '/"kind":"eval"/s/.*"step":\([0-9]*\).*"loss":\([0-9.]*\).*/\1 \2/p' "$work/$1-$2/metrics.jsonl" >"$out/$1-$2.losses"
}
for seed in 1 2 3; do
	for moments in fp32 int8; do train "$seed" "$moments"; done
	echo "seed $seed: steps, fp32, int8, difference"
	paste -d " " "$out/$seed-fp32.losses" "$out/$seed-int8.losses" |
		awk '{ printf "%d %.4f %.4f %+.3f %%\n", $1, $2, $4, 100 * ($4 / $2 - 1) }'
done
echo "seeds' mean: steps, difference"
for seed in 1 2 3; do paste -d " " "$out/$seed-fp32.losses" "$out/$seed-int8.losses"; done |
	awk '{ at[FNR % 10] = $1; sum[FNR % 10] += 100 * ($4 / $2 - 1) } END { for (i = 1; i <= 10; i++) printf "%d %+.3f %%\n", at[i % 10], sum[i % 10] / 3 }'
