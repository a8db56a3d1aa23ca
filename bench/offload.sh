#!/usr/bin/env bash
# offload.sh [STEPS]: held-out loss with weights and moments in the computer's memory (--offload), on
# the emulated GPU in bf16, beside the same run without it, and beside the processor in fp32, on real
# text (perl's documentation). All read the same sequences from the same first weights, in one thread
# each, at the same time. Prints the losses after each tenth of STEPS (a multiple of 10), and by how
# much the second is above the first in bf16. A step of the emulated GPU takes 0.6 s of a processor:
# 200 of them, with and without offload, five minutes of one.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rivulet=${RIVULET_BIN:-$top/build/release/bin}/rivulet
export RIVULET_CUDA_PLUGIN=${RIVULET_CUDA_PLUGIN:-$top/build/release/emulated/librivulet_cuda_emulated.so}
steps=${1:-200}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$top/lab/perl_doc.sh" "$work/text.txt"
train() { # NAME OPTIONS...
	"$rivulet" train --method ddp --workers 1 --data "$work/text.txt" --out "$work/$1" --n-layer 1 --n-head 2 \
		--n-embd 32 --context 32 --batch 4 --lr 3e-3 --warmup-steps 20 --steps-per-round $((steps / 10)) --rounds 10 \
		--seed 1 --eval-every 1 --eval-tokens 2048 --threads 1 "${@:2}" >"$work/$1.log" 2>&1 ||
		{ tail -3 "$work/$1.log" >&2 && exit 1; }
	sed -n '/"kind":"eval"/s/.*"step":\([0-9]*\).*"loss":\([0-9.]*\).*/\1 \2/p' "$work/$1/metrics.jsonl" >"$work/$1.losses"
}
runs=()
train processor --device cpu --dtype fp32 & runs+=($!)
train resident --device cuda --dtype bf16 --offload no & runs+=($!)
train offloaded --device cuda --dtype bf16 --offload yes & runs+=($!)
for run in "${runs[@]}"; do wait "$run"; done
echo "steps: processor in fp32, GPU in bf16, GPU in bf16 with offload, difference of the last two"
paste -d ' ' "$work"/{processor,resident,offloaded}.losses |
	awk '{ printf "%d: %.5f %.5f %.5f %+.4f %%\n", $1, $2, $4, $6, 100 * ($6 / $4 - 1) }'
