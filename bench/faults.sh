#!/usr/bin/env bash
# faults.sh: what becomes of an all-reduce when a participant is lost in the middle of it: bench/realnet/faults.py. RIVULET_BIN: where the programs are.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/faults.py" "$@"
