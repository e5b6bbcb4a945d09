# clew_stage(NAME SOURCES a.cc … [USES lib …] [TESTS a_test.cc …] [BENCHES …] [FUZZERS …])
# One folder = one static library clew_NAME, one test program NAME_test, one benchmark program
# NAME_bench, and one fuzz program per fuzzer (preset fuzz only).

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
option(CLEW_FUZZ "Build the fuzzers (needs clang)" OFF)
option(CLEW_TESTS "Build the tests" ON)
option(CLEW_UNITS "Files of a folder are compiled sixteen at a time" OFF)
option(CLEW_TESTS_ONCE "Tests that tools/sanitized runs are left to it" OFF)
file(STRINGS ${CMAKE_SOURCE_DIR}/tools/sanitized_stages.txt sanitized_stages)
option(CLEW_STRICT "Warnings are errors; off for users, whose compiler may know other ones" ON)

find_program(CLEW_CCACHE ccache)
if(CLEW_CCACHE)
  # It takes precompiled headers only if told that no file asks for the time or redefines a macro.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CLEW_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CLEW_CCACHE})
endif()

find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
if(CLEW_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()

add_library(clew_options INTERFACE)
target_include_directories(clew_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src)
target_compile_options(clew_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                       -Wno-gnu-statement-expression $<$<BOOL:${CLEW_STRICT}>:-Werror>)
# GCC 12 takes what is inlined from a precompiled header for code of ours, and std::string's own
# buffer for too small. Preset dev has these warnings.
set(of_inlined_strings -Wno-array-bounds -Wno-stringop-overread -Wno-stringop-overflow
    -Wno-restrict)
if(CLEW_PRECOMPILED AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(clew_options INTERFACE ${of_inlined_strings})
endif()
# To GCC a file's own types are a header's in a unit, where no class should have them as members;
# and what a function calls its constants may be another file's name for one. Presets dev and tidy
# have these warnings.
if(CLEW_UNITS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(clew_options INTERFACE -Wno-subobject-linkage -Wno-shadow -Wshadow=local)
elseif(CLEW_UNITS)
  target_compile_options(clew_options INTERFACE -Wno-shadow)
endif()
target_link_libraries(clew_options INTERFACE fmt::fmt)
include(precompiled)

function(clew_stage name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;TESTS;BENCHES;FUZZERS" ${ARGN})
  add_library(clew_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(clew_${name} PUBLIC clew_options ${ARG_USES})
  clew_precompile(clew_${name})
  if(ARG_TESTS AND CLEW_TESTS)
    clew_test_program(${name}_test SOURCES ${ARG_TESTS} USES clew_${name})
    target_compile_definitions(${name}_test PRIVATE CLEW_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    if(CLEW_TESTS_ONCE AND name IN_LIST sanitized_stages)
      set_target_properties(${name}_test PROPERTIES EXCLUDE_FROM_ALL TRUE)
    else()
      add_test(NAME ${name} COMMAND ${name}_test)
    endif()
  endif()
  if(ARG_BENCHES AND CLEW_TESTS)
    add_executable(${name}_bench ${ARG_BENCHES})
    target_link_libraries(${name}_bench PRIVATE clew_${name} benchmark::benchmark_main)
  endif()
  if(CLEW_FUZZ)
    foreach(fuzzer ${ARG_FUZZERS})
      get_filename_component(program ${fuzzer} NAME_WE)
      add_executable(${program} ${fuzzer})
      target_link_libraries(${program} PRIVATE clew_${name} -fsanitize=fuzzer)
      clew_precompile(${program})
    endforeach()
  endif()
endfunction()
