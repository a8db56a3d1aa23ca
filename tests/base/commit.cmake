# Runs base/commit/write_commit.cmake on trees made here: GIT, SCRIPT, DIR (a folder of its own).
set(tree ${DIR}/tree)
set(header ${DIR}/rv_commit.h)
set(ENV{GIT_CONFIG_GLOBAL} /dev/null)
set(ENV{GIT_CEILING_DIRECTORIES} ${DIR})

function(git)
	execute_process(COMMAND ${GIT} -C ${tree} -c user.name=n -c user.email=e ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()

function(expect source pattern)
	execute_process(COMMAND ${CMAKE_COMMAND} -DGIT=${GIT} -DSOURCE=${source} -DOUT=${header} -P ${SCRIPT}
		COMMAND_ERROR_IS_FATAL ANY)
	file(READ ${header} text)
	if(NOT text MATCHES "^#define RV_COMMIT \"${pattern}\"\n$")
		message(FATAL_ERROR "${source}: ${text} is not ${pattern}")
	endif()
endfunction()

file(REMOVE_RECURSE ${DIR})
file(WRITE ${tree}/base/commit/archived "$Format:%H$\n")
file(WRITE ${tree}/inside/base/commit/archived "$Format:%H$\n")
file(WRITE ${tree}/a.c "1\n")
expect(${tree} "") # no repository
git(init -q)
git(add -A)
git(commit -q -m one)
expect(${tree} "\\+[0-9a-f]+")
file(TIMESTAMP ${header} before "%s")
execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 1.1)
expect(${tree} "\\+[0-9a-f]+")
file(TIMESTAMP ${header} after "%s")
if(NOT before STREQUAL after)
	message(FATAL_ERROR "the header was written again though nothing had changed")
endif()
expect(${tree}/inside "") # inside the repository of something else
file(WRITE ${tree}/untracked "1\n")
expect(${tree} "\\+[0-9a-f]+")
file(WRITE ${tree}/a.c "2\n")
expect(${tree} "\\+[0-9a-f]+-dirty")
file(WRITE ${tree}/base/commit/archived "0123456789abcdef0123456789abcdef01234567\n") # as `git archive` writes it
expect(${tree} "\\+0123456789ab")
