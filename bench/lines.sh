#!/usr/bin/env bash
# lines.sh: slow lines, caps, and an absent coordinator: bench/realnet/lines.py. RIVULET_BIN: the
# folder of the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/lines.py" "$@"
