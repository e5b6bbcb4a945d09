# SPDX-License-Identifier: Apache-2.0
# What `make install` copies, in one place.
include(GNUInstallDirs)

if(TARGET clew)
  install(TARGETS clew RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        FILES_MATCHING PATTERN "*.1")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/vocabulary/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/clew/vocabulary
        FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/extensions/ ${CMAKE_BINARY_DIR}/extensions/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/clew/extensions
        FILES_MATCHING PATTERN "*.[cho]")
install(FILES ${CMAKE_SOURCE_DIR}/tools/completion.bash RENAME clew
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
