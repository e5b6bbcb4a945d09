# SPDX-License-Identifier: Apache-2.0
# READELF, ELF: the runtime may depend on nothing, neither at link time nor at load time.
execute_process(COMMAND ${READELF} -W -r -d -s ${ELF} OUTPUT_VARIABLE dump
                COMMAND_ERROR_IS_FATAL ANY)
if(NOT dump MATCHES "There are no relocations in this file")
  message(FATAL_ERROR "the runtime blob has relocations:\n${dump}")
endif()
if(dump MATCHES "\\(NEEDED\\)")
  message(FATAL_ERROR "the runtime blob needs a library:\n${dump}")
endif()
if(dump MATCHES " UND [a-zA-Z_]")
  message(FATAL_ERROR "the runtime blob has an undefined symbol:\n${dump}")
endif()
if(dump MATCHES " TLS ")
  message(FATAL_ERROR "the runtime blob uses thread-local storage:\n${dump}")
endif()
