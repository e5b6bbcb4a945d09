# Headers that many files include, parsed once, and files that are compiled together. No compiler
# misses an include then; tools/check_layers and tools/check_tidy do.
#
#   preset                headers of src/      of tests                                 units
#   dev, asan, tsan, tidy none                 none                                     no
#   release               those listed below   -                                        yes
#   test, fuzz            those listed below   those, <gmock/gmock.h>, <gtest/gtest.h>  as asked
#
# A unit is sixteen files of a target (CLEW_UNITS): half of what a compiler does for one file it
# would do for each of them, as it takes up the headers and makes what their templates are used for
# (units of eight take a fifth longer). A change of one file compiles sixteen, so it is for builds
# that are made once (tools/run_tests). The names at the top of a target's files differ:
# tools/check_units.
#
# clew_precompile(NAME): the target, a library or a program, has both where the preset says so.
# clew_test_program(NAME SOURCES a_test.cc … USES lib …): a program of GoogleTest, which does too.
option(CLEW_PRECOMPILED "Headers of others are parsed once" OFF)
set(CLEW_TEST_OPTIONS "" CACHE STRING "How tests are compiled, but not what they test")
set(every_header <algorithm> <array> <charconv> <cstdint> <filesystem> <fstream> <functional> <map>
    <memory> <optional> <set> <span> <string> <string_view> <utility> <variant> <vector>
    <fmt/format.h> <tl/expected.hpp>)

# A precompiled header belongs to a target, and a target has a source.
function(clew_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;USES" ${ARGN})
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
  target_link_libraries(${name} PRIVATE clew_options ${ARG_USES})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # With times in it ccache would never see it again.
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

if(CLEW_PRECOMPILED)
  clew_precompiled(clew_headers HEADERS ${every_header})
endif()
if(CLEW_TESTS AND CLEW_PRECOMPILED)
  clew_precompiled(clew_test_headers HEADERS ${every_header} <gmock/gmock.h> <gtest/gtest.h>
                  USES GTest::gtest)
  target_compile_options(clew_test_headers PRIVATE ${CLEW_TEST_OPTIONS})
endif()

function(clew_in_units name)
  if(CLEW_UNITS)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  endif()
endfunction()

function(clew_precompile name)
  if(TARGET clew_headers)
    target_precompile_headers(${name} REUSE_FROM clew_headers)
  endif()
  clew_in_units(${name})
endfunction()

function(clew_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_USES} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${CLEW_TEST_OPTIONS})
  if(TARGET clew_test_headers)
    target_precompile_headers(${name} REUSE_FROM clew_test_headers)
  endif()
  clew_in_units(${name})
endfunction()
