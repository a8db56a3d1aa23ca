#!/usr/bin/env bash
# offload.sh [STEPS]: held-out loss with weights and moments in the computer's memory (--offload), on
# the emulated GPU in bf16, beside the same run without it, and beside the processor in fp32, on real
# text (perl's documentation). All read the same sequences from the same first weights. Prints the
# loss after each quarter of STEPS (a multiple of 4). A step of the emulated GPU takes 0.6 s of a
# processor: 200 of them, with and without offload, four minutes of one.
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
		--n-embd 32 --context 32 --batch 4 --lr 3e-3 --warmup-steps 20 --steps-per-round $((steps / 4)) --rounds 4 \
		--seed 1 --eval-every 1 --eval-tokens 4096 --threads 1 "${@:2}" >"$work/$1.log" 2>&1 ||
		{ tail -3 "$work/$1.log" >&2 && exit 1; }
	echo "$1: $(sed -n '/"kind":"eval"/s/.*"step":\([0-9]*\).*"loss":\([0-9.]*\).*/\1 steps \2;/p' "$work/$1/metrics.jsonl" | tr '\n' ' ')"
}
train processor-fp32 --device cpu --dtype fp32
train gpu-bf16 --device cuda --dtype bf16 --offload no
train gpu-bf16-offload --device cuda --dtype bf16 --offload yes
