#!/usr/bin/env bash
# text_start.sh: how long programs take to start on a published text, and their memory, against its
# size: bench/realnet/text_start.py. RIVULET_BIN: the folder of the programs.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
RIVULET_BIN=${RIVULET_BIN:-$top/build/release/bin} exec python3 -B "$top/bench/realnet/text_start.py" "$@"
