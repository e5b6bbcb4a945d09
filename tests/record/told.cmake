# Programs in C++ whose compiler has put a call into each of their blocks, by which they tell what
# they ran. Each block of theirs is a line of its own, and so is each of the calls.
find_program(CLEW_EXTENSION_COMPILER NAMES clang-16 clang)
if(NOT CLEW_EXTENSION_COMPILER)
  add_test(NAME record.told COMMAND ${CMAKE_COMMAND} -E echo "skipped: no clang")
  set_tests_properties(record.told PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
  return()
endif()
set(CLEW_TOLD ${CMAKE_CURRENT_BINARY_DIR}/told)
function(clew_told name source)
  set(stem ${CLEW_TOLD}/${name})
  add_custom_command(OUTPUT ${stem}.o ${stem}.s
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CLEW_TOLD}
    COMMAND ${CLEW_EXTENSION_COMPILER} -std=c++20 -gdwarf-4 ${ARGN}
            -fsanitize-coverage=trace-pc-guard,no-prune
            -S ${CMAKE_CURRENT_SOURCE_DIR}/victims/${source} -o ${stem}_as_it_is.s
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/number_guards ${stem}_as_it_is.s > ${stem}.s
    COMMAND ${CLEW_EXTENSION_COMPILER} -w -c ${stem}.s -o ${stem}.o
    DEPENDS victims/${source} number_guards VERBATIM)
  add_executable(told_${name} ${stem}.o victims/tells_guards.c)
  set_target_properties(told_${name} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY ${CLEW_TOLD})
  target_link_libraries(told_${name} PRIVATE Threads::Threads)
endfunction()
set_source_files_properties(victims/tells_guards.c PROPERTIES
  COMPILE_OPTIONS "-O2;-Wall;-Wextra;-Werror")
clew_told(works works.cc -O2)
clew_told(works_O0 works.cc -O0)
# GoogleTest, as Debian has its source, with its own samples.
find_path(CLEW_GTEST_SOURCE src/gtest-all.cc PATHS /usr/src/googletest/googletest
  NO_DEFAULT_PATH)
if(CLEW_GTEST_SOURCE)
  clew_told(samples samples.cc -O2 -I${CLEW_GTEST_SOURCE} -I${CLEW_GTEST_SOURCE}/include)
endif()
add_test(NAME record.told COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/told $<TARGET_FILE:clew>
  ${CLEW_TOLD})
set_tests_properties(record.told PROPERTIES TIMEOUT 120 LABELS live)
