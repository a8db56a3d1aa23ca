# vendor.cmake: cmake -D ROOT=DIR -P vendor.cmake: nothing of a maker of GPUs stands outside of its
# plugin (kernels/cuda/) in the C code of these rooms, tests left out: no header, no function, no type of theirs, and in code not even the
# plugin's name, but where `named` allows it. So a second plugin is a folder beside it and a line in
# kernels/plugins.def (docs/gpu.md).
cmake_minimum_required(VERSION 3.22)

set(headers "cuda[A-Za-z_]*|cublas[A-Za-z_]*|cudnn[A-Za-z_]*|nccl|nvrtc|nvml|hip/.*|rocblas.*|rccl.*|Metal/.*")
set(names "cuda[A-Z][A-Za-z]+(_t)?|cu[A-Z][a-z]+[A-Z][A-Za-z]+|CU[a-z]+[A-Z]?[a-z]*|cublas[A-Z][A-Za-z]*|cudnn[A-Z][A-Za-z]*|nccl[A-Z][A-Za-z]*(_t)?|hip[A-Z][A-Za-z]+")
set(found "^[ \t]*#[ \t]*include[ \t]*[<\"](${headers})\\.h[>\"]|(^|[^A-Za-z0-9_])(${names})($|[^A-Za-z0-9_])")

# Where code may name the plugin, FILE: EXPRESSION OF THE LINE.
set(named
	"kernels/plugins.def: ^PLUGIN\\(cuda\\)$" # the line of the registry
	"kernels/device.h: ^\"Device to compute on: " # values of --device, which people type
	"lab/commands/replay.c: RIVULET_CUDA_DETERMINISTIC=1" # a variable that people set
	"bench/bench_audit.c: RIVULET_CUDA_PLUGIN|open_machine..cuda" # the machines whose training it compares
)
# Files that are a maker's: the plugin, and what marks steps for the maker's profiler.
set(of_makers "^kernels/cuda/|^bench/profiler\\.c$")

# Whether `named` allows `line` of `file`.
function(is_allowed file line out)
	set(${out} FALSE PARENT_SCOPE)
	foreach(entry ${named})
		string(REGEX MATCH "^([^:]*): (.*)$" entry "${entry}")
		set(expression "${CMAKE_MATCH_2}")
		if(CMAKE_MATCH_1 STREQUAL file AND line MATCHES "${expression}")
			set(${out} TRUE PARENT_SCOPE)
		endif()
	endforeach()
endfunction()

# The lines of code of `file` with the plugin's name, behind those of `wrong` in the caller.
function(find_name file)
	file(STRINGS ${ROOT}/${file} lines REGEX "[Cc][Uu][Dd][Aa]")
	if(NOT lines)
		return()
	endif()
	file(READ ${ROOT}/${file} text)
	string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" "" text "${text}") # comments
	string(REPLACE ";" "," text "${text}") # which separates a list
	string(REGEX MATCHALL "[^\n]*[Cc][Uu][Dd][Aa][^\n]*" lines "${text}")
	foreach(line ${lines})
		string(STRIP "${line}" line)
		is_allowed(${file} "${line}" allowed)
		if(NOT allowed)
			list(APPEND wrong "  ${file}: ${line}")
		endif()
	endforeach()
	set(wrong "${wrong}" PARENT_SCOPE)
endfunction()

set(n 0)
set(wrong "")
foreach(top base kernels outer net train worker coordinator lab bench)
	file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${top}/*.c ${ROOT}/${top}/*.h ${ROOT}/${top}/*.def)
	list(FILTER files EXCLUDE REGEX "${of_makers}")
	foreach(file ${files})
		math(EXPR n "${n} + 1")
		find_name(${file})
		file(STRINGS ${ROOT}/${file} lines REGEX "${found}")
		foreach(line ${lines})
			string(REGEX REPLACE "^[ \t]*\\*.*|/\\*.*" "" line "${line}") # a comment may name them
			if(line MATCHES "${found}")
				string(STRIP "${line}" line)
				list(APPEND wrong "  ${file}: ${line}")
			endif()
		endforeach()
	endforeach()
endforeach()

if(wrong)
	list(JOIN wrong "\n" wrong)
	message(FATAL_ERROR "something of a maker's stands outside of its plugin:\n${wrong}")
endif()
if(n EQUAL 0)
	message(FATAL_ERROR "${ROOT}: no file found")
endif()
message(STATUS "${n} files, nothing of a maker's")
