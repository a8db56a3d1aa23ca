#!/usr/bin/env bash
# text.sh: what a run's text costs its members on shaped lines: bytes for each token trained, and the
# time that training waits: bench/realnet/text.py. RIVULET_BIN: the folder of the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/text.py" "$@"
