#!/usr/bin/env bash
# heal.sh: how soon a worker is level again after its line was cut, or its address changed:
# bench/realnet/heal.py. RIVULET_BIN: the folder of the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/heal.py" "$@"
