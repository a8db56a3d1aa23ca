#!/bin/sh
# registers.sh LOG...: from what `nvcc -Xptxas -v` said, a table of every kernel's registers, shared
# memory and spills by architecture. Fails when a kernel spills registers to memory, or when the
# logs name no kernel at all.
set -eu
cat "$@" | c++filt | awk '
	/Compiling entry function/ {
		arch = $NF; gsub(/\x27/, "", arch)
		kernel = $0; sub(/.*entry function \x27/, "", kernel); sub(/\x27 for .*/, "", kernel)
		sub(/^void /, "", kernel); sub(/\([^()]*(\([^()]*\)[^()]*)*\)$/, "", kernel)
	}
	/bytes spill stores/ {
		for (i = 1; i <= NF; i++) {
			if ($(i + 1) == "bytes" && $(i + 2) == "spill" && $(i + 3) ~ /^stores/) stores = $i
			if ($(i + 1) == "bytes" && $(i + 2) == "spill" && $(i + 3) ~ /^loads/) loads = $i
		}
	}
	/Used [0-9]+ registers/ {
		registers = shared = 0
		for (i = 1; i <= NF; i++) {
			if ($(i + 1) ~ /^registers/) registers = $i
			if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared = $i
		}
		printf "%-6s %4d %7d %7d %7d  %s\n", arch, registers, shared, stores, loads, kernel | "sort -k6,6 -k1,1"
		kernels++
		if (stores + loads > 0)
			spilling[++n] = arch " " kernel
		if (registers > most) { most = registers; largest = arch " " kernel }
	}
	END {
		close("sort -k6,6 -k1,1")
		printf "arch   regs  shared  stored  loaded  kernel (static shared memory and spills in bytes)\n"
		printf "%d kernels; %d registers at most: %s\n", kernels, most, largest
		for (i = 1; i <= n; i++) printf "spills: %s\n", spilling[i]
		exit kernels == 0 || n > 0
	}'
