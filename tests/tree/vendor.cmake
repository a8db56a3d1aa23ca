# vendor.cmake: cmake -D ROOT=DIR -P vendor.cmake: nothing of a maker of GPUs stands outside of its
# plugin (kernels/cuda/): no header, no function, no type of theirs. So a second plugin is a folder
# beside it (docs/gpu.md). A name for people, as in --device cuda, is none.
cmake_minimum_required(VERSION 3.22)

set(headers "cuda[A-Za-z_]*|cublas[A-Za-z_]*|cudnn[A-Za-z_]*|nccl|nvrtc|nvml|hip/.*|rocblas.*|rccl.*|Metal/.*")
set(names "cuda[A-Z][A-Za-z]+(_t)?|cu[A-Z][a-z]+[A-Z][A-Za-z]+|CU[a-z]+[A-Z]?[a-z]*|cublas[A-Z][A-Za-z]*|cudnn[A-Z][A-Za-z]*|nccl[A-Z][A-Za-z]*(_t)?|hip[A-Z][A-Za-z]+")
set(found "^[ \t]*#[ \t]*include[ \t]*[<\"](${headers})\\.h[>\"]|(^|[^A-Za-z0-9_])(${names})($|[^A-Za-z0-9_])")

set(n 0)
set(wrong "")
foreach(top base kernels outer net train worker coordinator lab)
	file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${top}/*.c ${ROOT}/${top}/*.h)
	list(FILTER files EXCLUDE REGEX "^kernels/cuda/")
	foreach(file ${files})
		math(EXPR n "${n} + 1")
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
	message(FATAL_ERROR "a maker's library stands outside of its plugin:\n${wrong}")
endif()
if(n EQUAL 0)
	message(FATAL_ERROR "${ROOT}: no file found")
endif()
message(STATUS "${n} files, nothing of a maker's")
