#!/bin/sh
# compile.sh LOG NVCC ARGS...: runs nvcc; its output (registers and spills: -Xptxas -v) goes to LOG,
# and to the terminal when it fails.
log=$1
shift
if ! "$@" >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
