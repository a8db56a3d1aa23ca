# CPack's Debian packages, one a component (`./dev package`): rivulet-worker, rivulet-coordinator,
# rivulet, and rivulet-cuda where the plugin was built. RV_PACKAGE_VERSION and SOURCE_DATE_EPOCH come
# from packaging/make.sh.
set(RV_PACKAGE_VERSION ${PROJECT_VERSION} CACHE STRING "Version of the packages")
set(RV_MAINTAINER "The Rivulet contributors <rivulet@localhost>" CACHE STRING "Maintainer of the packages")
set(packages rivulet rivulet-coordinator rivulet-worker)
if(RV_CUDA_PLUGIN)
	list(APPEND packages rivulet-cuda)
endif()
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rivulet)
set(CPACK_PACKAGE_VENDOR Rivulet)
set(CPACK_PACKAGE_VERSION ${RV_PACKAGE_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${RV_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

# rv_deb(PACKAGE SUMMARY TEXT [DEPENDS...]): the summary, the text below it, what it needs beside its
# libraries, maintainer scripts where packaging/debian has them, and its folder of documents.
function(rv_deb package summary text)
	string(TOUPPER ${package} upper)
	string(JOIN ", " depends ${ARGN})
	set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
	set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
	set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
	set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
	file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/packaging/debian/${package}/*)
	set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${scripts}" PARENT_SCOPE)
	install(FILES packaging/debian/copyright ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION share/doc/${package}
		COMPONENT ${package})
endfunction()
rv_deb(rivulet-worker "trains a language model together with distant computers"
	"Rivulet trains one language model on computers that are far apart and joined\n\
only by ordinary internet lines. This is the program of a volunteer: it joins a\n\
run by an invite link and gives it the computing time that its owner allows."
	adduser ca-certificates)
rv_deb(rivulet-coordinator "coordinates the training of a language model on distant computers"
	"Rivulet trains one language model on computers that are far apart and joined\n\
only by ordinary internet lines. This is the program of an operator: it decides\n\
who takes part in which round, and sees no weight and no line of text."
	adduser ca-certificates)
rv_deb(rivulet "laboratory for training language models with little communication"
	"Rivulet trains one language model on computers that are far apart. This is the\n\
program of a researcher: it trains in one process with the code of the\n\
distributed run, compares methods, samples, evaluates and exports."
	ca-certificates)
rv_deb(rivulet-cuda "NVIDIA GPUs for rivulet-worker and rivulet"
	"The plugin with which the worker and the laboratory of Rivulet compute on NVIDIA\n\
GPUs of compute capability 8.0 and newer. It needs NVIDIA's driver, and uses\n\
cuBLASLt, cuDNN and NCCL where they are installed."
	"rivulet-worker (= ${RV_PACKAGE_VERSION}) | rivulet (= ${RV_PACKAGE_VERSION})")

# The changelog of Debian's form: one entry, that of this version.
set(ENV{LC_ALL} C)
string(TIMESTAMP made "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, where it is set
file(WRITE ${CMAKE_BINARY_DIR}/changelog "rivulet (${RV_PACKAGE_VERSION}) unstable; urgency=medium\n\n\
  * What changed is in CHANGELOG.md of the sources.\n\n\
 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${made}\n")
execute_process(COMMAND ${RV_GZIP} -9 -n -k -f ${CMAKE_BINARY_DIR}/changelog COMMAND_ERROR_IS_FATAL ANY)
include(CPack)
