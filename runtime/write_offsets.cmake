# SPDX-License-Identifier: Apache-2.0
# NM, ELF, NAMES, OUT: writes the offsets of a blob's doors as constants.
execute_process(COMMAND ${NM} ${ELF} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
set(text "// Generated from the symbol table of a runtime blob.\n")
string(APPEND text "#pragma once\n#include <cstdint>\n")
string(REPLACE "," ";" NAMES "${NAMES}")
foreach(name ${NAMES})
  if(NOT symbols MATCHES "([0-9a-f]+) [a-zA-Z] ${name}\n")
    message(FATAL_ERROR "the blob ${ELF} has no symbol ${name}")
  endif()
  string(APPEND text "inline constexpr uint32_t kOffset_${name} = 0x${CMAKE_MATCH_1};\n")
endforeach()
file(WRITE ${OUT} "${text}")
