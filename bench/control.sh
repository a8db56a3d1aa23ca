#!/usr/bin/env bash
# control.sh: how long control waits while the lines are full: bench/realnet/control.py.
# RIVULET_BIN: the folder of the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/control.py" "$@"
