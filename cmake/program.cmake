# rv_program(NAME LINK libs...): an installed program, made of main.c of this folder, with its manual
# page and its completions. The program prints these itself, from its table of options.
find_program(RV_GZIP gzip REQUIRED)

# A program of another processor needs an emulator to print; one with a sanitizer may not run here.
set(RV_PRINTS ON)
if((CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR) OR CMAKE_C_FLAGS MATCHES "-fsanitize")
	set(RV_PRINTS OFF)
endif()

function(rv_program name)
	cmake_parse_arguments(A "" "" "LINK" ${ARGN})
	add_executable(${name} main.c)
	target_link_libraries(${name} PRIVATE rv_commit ${A_LINK})
	install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${name})
	if(NOT RV_PRINTS)
		return()
	endif()
	set(printed ${CMAKE_BINARY_DIR}/printed)
	add_custom_command(TARGET ${name} POST_BUILD VERBATIM COMMENT ""
		COMMAND ${CMAKE_COMMAND} "-DPROGRAM=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:${name}>" -DNAME=${name}
			-DOUT=${printed} -DGZIP=${RV_GZIP} -P ${CMAKE_SOURCE_DIR}/cmake/print.cmake)
	install(FILES ${printed}/${name}.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${name})
	install(FILES ${printed}/${name}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
		RENAME ${name} COMPONENT ${name})
	install(FILES ${printed}/${name}.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
		RENAME _${name} COMPONENT ${name})
	install(FILES ${printed}/${name}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
		COMPONENT ${name})
endfunction()
