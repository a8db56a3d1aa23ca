#!/usr/bin/env bash
# faults.sh: the recovery of an all-reduce that loses a participant in its middle:
# bench/realnet/faults.py. RIVULET_BIN: the folder of the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/faults.py" "$@"
