#!/usr/bin/env bash
# stall.sh: how long checkpoints stop training: bench/realnet/stall.py. RIVULET_BIN: the folder of
# the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/stall.py" "$@"
