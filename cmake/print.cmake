# print.cmake: has a program print its manual page and its completions.
# cmake -DPROGRAM="[EMULATOR;]PROGRAM" -DNAME=NAME -DOUT=DIR -DGZIP=gzip -P print.cmake
function(printed file)
	execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${OUT}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
file(MAKE_DIRECTORY ${OUT})
printed(${NAME}.1 --man)
execute_process(COMMAND ${GZIP} -9 -n -f ${OUT}/${NAME}.1 COMMAND_ERROR_IS_FATAL ANY)
foreach(shell bash zsh fish)
	printed(${NAME}.${shell} --completion ${shell})
endforeach()
