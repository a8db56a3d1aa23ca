#!/usr/bin/env bash
# fleet.sh: what many members cost the coordinator: bench/realnet/fleet.py. RIVULET_BIN: the folder
# of the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/fleet.py" "$@"
