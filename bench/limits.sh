#!/usr/bin/env bash
# limits.sh: what a worker takes of the processors under --cpu-share: bench/realnet/limits.py.
# RIVULET_BIN: the folder of the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/limits.py" "$@"
