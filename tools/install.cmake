# SPDX-License-Identifier: Apache-2.0
# What `make install` copies, in one place.
include(GNUInstallDirs)

if(TARGET clew)
  install(TARGETS clew RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# By name: a whole folder would bring its empty ones.
file(GLOB manual_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.1)
file(GLOB vocabularies CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/vocabulary/*.toml)
file(GLOB verbs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/verbs/*.clew ${CMAKE_SOURCE_DIR}/verbs/*.d)
file(GLOB extensions CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/extensions/*.[ch])
install(FILES ${manual_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/man/clew-query.7 ${CMAKE_BINARY_DIR}/man/clew-extensions.7
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
foreach(verb ${verbs})
  get_filename_component(name ${verb} NAME_WLE)
  if(NOT name MATCHES "[.]")
    install(FILES ${CMAKE_BINARY_DIR}/man/clew-${name}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endforeach()
install(FILES ${verbs} DESTINATION ${CMAKE_INSTALL_DATADIR}/clew/verbs)
install(FILES ${CMAKE_SOURCE_DIR}/include/clew/cause.h ${CMAKE_SOURCE_DIR}/include/clew/guards.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/clew)
install(FILES ${vocabularies} DESTINATION ${CMAKE_INSTALL_DATADIR}/clew/vocabulary)
install(FILES ${extensions} ${CLEW_EXTENSION_OBJECTS}
        DESTINATION ${CMAKE_INSTALL_DATADIR}/clew/extensions)
install(FILES ${CMAKE_SOURCE_DIR}/examples/cluster/clew-node.service
              ${CMAKE_SOURCE_DIR}/examples/cluster/clew-root.service
              ${CMAKE_SOURCE_DIR}/examples/cluster/nats-server.conf
              ${CMAKE_SOURCE_DIR}/examples/cluster/roles.toml
              ${CMAKE_SOURCE_DIR}/examples/cluster/three-servers.conf
        DESTINATION ${CMAKE_INSTALL_DATADIR}/clew/cluster)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ ${CMAKE_SOURCE_DIR}/examples
        DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS)
install(FILES ${CMAKE_SOURCE_DIR}/tools/completion.bash RENAME clew
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
