# Writes OUT, `#define RV_COMMIT "+<12 digits>[-dirty]"`, when it has changed. GIT: the program, may
# be empty. The commit is taken only from a repository whose top is SOURCE: a tarball inside another
# repository has no commit.
set(commit "")
file(STRINGS ${SOURCE}/base/commit/archived archived LIMIT_COUNT 1) # `git archive` puts the commit there (.gitattributes)
if(archived MATCHES "^[0-9a-f]+$")
	string(SUBSTRING ${archived} 0 12 archived)
	set(commit "+${archived}")
elseif(GIT)
	execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-prefix --short=12 HEAD
		OUTPUT_VARIABLE answer RESULT_VARIABLE status ERROR_QUIET)
	# The prefix is an empty line at the top of a work tree.
	if(status EQUAL 0 AND answer MATCHES "^\n([0-9a-f]+)\n$")
		set(commit "+${CMAKE_MATCH_1}")
		execute_process(COMMAND ${GIT} -C ${SOURCE} diff --quiet HEAD -- RESULT_VARIABLE dirty ERROR_QUIET OUTPUT_QUIET)
		if(NOT dirty EQUAL 0)
			string(APPEND commit "-dirty")
		endif()
	endif()
endif()
set(text "#define RV_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS ${OUT})
	file(READ ${OUT} old)
endif()
if(NOT text STREQUAL old)
	file(WRITE ${OUT} "${text}")
endif()
