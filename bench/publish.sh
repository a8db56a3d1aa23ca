#!/usr/bin/env bash
# publish.sh [--mb N] [--turns N] [--gb N] [--alone] [--judges DIR] [--keep DIR] ROOT...: how fast text becomes shards of tokens: `rivulet data publish`
# beside Hugging Face's datasets + tokenizers (as nanoGPT's prepare.py uses them) and beside llm.c's way (a pool of processes
# with tiktoken, dev/data/fineweb.py), on the same documents, in one run, in turns: the files below each ROOT, up to N MB (100) of
# text. --gb N: then rivulet alone, on N GB: those documents repeated, each time in another order and each begun at another line;
# --alone: that only.
# Needs what `./dev deps judges` installs, or DIR/venv with datasets, pyarrow, tokenizers and tiktoken.
set -eu
cd "$(dirname "$0")/.."
judges=$PWD/.cache/judges
if [ "${1-}" = --judges ]; then judges=$2; shift 2; fi
if [ ! -x "$judges/venv/bin/python" ]; then
	echo "publish: there is no $judges/venv/bin/python: ./dev deps judges makes it"
	exit 77
fi
exec "$judges/venv/bin/python" -B bench/publish.py build/release/bin/rivulet "$@"
