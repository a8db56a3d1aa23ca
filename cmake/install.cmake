# What `cmake --install` puts down besides the programs (cmake/program.cmake): the CUDA plugin where it
# was built, systemd units, and the licences of all that is in the programs. A component is a package
# (cmake/package.cmake).
install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/librivulet_cuda.so OPTIONAL DESTINATION lib/rivulet COMPONENT rivulet-cuda)
install(FILES LICENSE THIRD-PARTY DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licences)

# rv_unit(COMPONENT KIND FILE): a unit of systemd's KIND, system or user, which starts the installed
# program.
function(rv_unit component kind file)
	configure_file(packaging/systemd/${kind}/${file} ${CMAKE_BINARY_DIR}/systemd/${kind}/${file} @ONLY)
	install(FILES ${CMAKE_BINARY_DIR}/systemd/${kind}/${file} DESTINATION lib/systemd/${kind} COMPONENT ${component})
endfunction()
rv_unit(rivulet-worker system rivulet-worker@.service)
rv_unit(rivulet-worker user rivulet-worker.service)
rv_unit(rivulet-coordinator system rivulet-coordinator@.service)
