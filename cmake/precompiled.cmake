# Headers that many files include, parsed once. No compiler misses the include of one then;
# tools/check_layers does.
#
#   preset                src/                 tests
#   dev, asan, tsan, tidy none                 none
#   release, test, fuzz   those listed below   those, <gmock/gmock.h>, <gtest/gtest.h>
#
# clew_precompile(NAME): the target, a library or a program, uses them where the preset says so.
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

function(clew_precompile name)
  if(TARGET clew_headers)
    target_precompile_headers(${name} REUSE_FROM clew_headers)
  endif()
endfunction()

function(clew_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_USES} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${CLEW_TEST_OPTIONS})
  if(TARGET clew_test_headers)
    target_precompile_headers(${name} REUSE_FROM clew_test_headers)
  endif()
endfunction()
