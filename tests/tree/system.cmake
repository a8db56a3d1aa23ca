# system.cmake: cmake -D ROOT=DIR -P system.cmake: what only Linux has stands in base/os_*_linux.c, so
# that a port to another system is those files (docs/porting.md). kernels/cuda/ is a plugin that other
# systems do without.
cmake_minimum_required(VERSION 3.22)

# Headers of Linux and glibc; calls and options that POSIX does not have, or that macOS has not.
set(headers "linux/.*|asm/.*|sys/(auxv|epoll|eventfd|fanotify|inotify|personality|prctl|random|sendfile|signalfd|sysinfo|syscall|timerfd|vfs|xattr)\\.h|sched\\.h|malloc\\.h|net/if_packet\\.h|netpacket/.*|link\\.h|execinfo\\.h")
set(calls "accept4|clock_nanosleep|eventfd|epoll_[a-z0-9]+|fallocate|posix_fallocate|fdatasync|gettid|getauxval|getrandom|inotify_[a-z0-9]+|madvise|memfd_create|mremap|pipe2|ppoll|prctl|process_vm_readv|process_vm_writev|pthread_[a-z_]*_np|pthread_condattr_setclock|qsort_r|recvmmsg|sched_[a-z]+|secure_getenv|sendfile|sendmmsg|setns|signalfd|splice|statx|syncfs|syscall|sysinfo|timerfd_[a-z]+|unshare|strchrnul")
set(names "CLOCK_BOOTTIME|MADV_[A-Z]+|MAP_NORESERVE|MSG_NOSIGNAL|O_TMPFILE|O_PATH|SOCK_CLOEXEC|SOCK_NONBLOCK|SIOC[A-Z]+|SO_BINDTODEVICE|TCP_CONGESTION|TCP_CORK|TCP_INFO|TCP_KEEPCNT|TCP_KEEPIDLE|TCP_KEEPINTVL|TCP_NOTSENT_LOWAT|TCP_QUICKACK|TCP_USER_TIMEOUT|RTMGRP_[A-Z0-9_]+|AF_NETLINK|AF_PACKET")

set(found "^[ \t]*#[ \t]*include[ \t]*<(${headers})>|(^|[^A-Za-z0-9_>.])(${calls})\\(|(^|[^A-Za-z0-9_])(${names})($|[^A-Za-z0-9_])|\"/(proc|sys)/")

set(n 0)
set(wrong "")
foreach(top base kernels outer net train worker coordinator lab)
	file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${top}/*.c ${ROOT}/${top}/*.h)
	list(FILTER files EXCLUDE REGEX "^base/os_[a-z_]+_linux\\.c$|^kernels/cuda/")
	foreach(file ${files})
		math(EXPR n "${n} + 1")
		file(STRINGS ${ROOT}/${file} lines REGEX "${found}")
		foreach(line ${lines})
			string(REGEX REPLACE "^[ \t]*\\*.*|/\\*.*" "" line "${line}") # a comment may name what is behind a call
			if(line MATCHES "${found}")
				string(STRIP "${line}" line)
				list(APPEND wrong "  ${file}: ${line}")
			endif()
		endforeach()
	endforeach()
endforeach()

if(wrong)
	list(JOIN wrong "\n" wrong)
	message(FATAL_ERROR "only Linux has this: put it behind a header base/os_*.h:\n${wrong}")
endif()
if(n EQUAL 0)
	message(FATAL_ERROR "${ROOT}: no file found")
endif()
message(STATUS "${n} files, none of one system")
