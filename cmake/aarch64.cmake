# aarch64.cmake: the toolchain that builds for aarch64 Linux on an x86-64 Debian, with its cross
# compiler and the libraries of the root that cmake/sysroot.sh makes (./dev cross aarch64 does all of
# it). Tests run under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(RV_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../.cache/cross/aarch64 CACHE PATH "Root with the libraries of aarch64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RV_SYSROOT)
get_filename_component(root ${RV_SYSROOT} REALPATH)
set(CMAKE_SYSROOT ${root})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(ENV{PKG_CONFIG_LIBDIR} ${root}/usr/lib/aarch64-linux-gnu/pkgconfig:${root}/usr/share/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-cpu;max;-L;${root})
