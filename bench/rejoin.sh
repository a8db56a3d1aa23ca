#!/usr/bin/env bash
# rejoin.sh: how long a worker needs to fetch the run's state from its peers:
# bench/realnet/rejoin.py. RIVULET_BIN: the folder of the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/rejoin.py" "$@"
