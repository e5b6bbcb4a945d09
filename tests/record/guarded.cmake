# Programs whose compiler has put guards into them, by the names of those without: the same cases
# are true of them.
find_program(CLEW_EXTENSION_COMPILER NAMES clang-16 clang)
if(NOT CLEW_EXTENSION_COMPILER)
  foreach(name guarded told)
    add_test(NAME record.${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: no clang")
    set_tests_properties(record.${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
  endforeach()
  return()
endif()
set(CLEW_GUARDED ${CMAKE_CURRENT_BINARY_DIR}/guarded)
function(clew_guarded name source compiler)
  set(object ${CLEW_GUARDED}/${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CLEW_GUARDED}
    COMMAND ${compiler} -g -w ${ARGN} -c ${CMAKE_CURRENT_SOURCE_DIR}/victims/${source} -o ${object}
    DEPENDS victims/${source} VERBATIM)
  add_executable(guarded_${name} ${object})
  set_target_properties(guarded_${name} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY ${CLEW_GUARDED})
  target_link_libraries(guarded_${name} PRIVATE clew_guards Threads::Threads)
endfunction()
set(guards -fsanitize-coverage=trace-pc-guard)
set(table -fsanitize-coverage=trace-pc-guard,pc-table)
set(calls -fsanitize-coverage=trace-pc)
foreach(name crashes processes forks threads)
  clew_guarded(${name} ${name}.c ${CLEW_EXTENSION_COMPILER} -O2 ${guards})
endforeach()
clew_guarded(crashes_O0 crashes.c ${CLEW_EXTENSION_COMPILER} -O0 ${table})
clew_guarded(steps steps.c ${CLEW_EXTENSION_COMPILER} -O2 ${table})
clew_guarded(steps_O0 steps.c ${CLEW_EXTENSION_COMPILER} -O0 ${guards})
clew_guarded(throws throws.cc ${CLEW_EXTENSION_COMPILER} -std=c++20 -O2 ${guards})
clew_guarded(throws_O0 throws.cc ${CLEW_EXTENSION_COMPILER} -std=c++20 -O0 ${table})
clew_guarded(crashes_gcc crashes.c ${CMAKE_C_COMPILER} -O2 ${calls})
clew_guarded(steps_gcc steps.c ${CMAKE_C_COMPILER} -O2 ${calls})
add_test(NAME record.guarded COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/guarded $<TARGET_FILE:clew>
  ${CLEW_GUARDED})
set_tests_properties(record.guarded PROPERTIES TIMEOUT 120 RUN_SERIAL ON LABELS live)

# A large one, each of whose blocks is a line of its own; and one more whose guards tell.
set(works ${CLEW_GUARDED}/works)
add_custom_command(OUTPUT ${works}_tells.o ${works}.o
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CLEW_GUARDED}
  COMMAND ${CLEW_EXTENSION_COMPILER} -std=c++20 -O2 -gdwarf-4 ${guards} -S
          ${CMAKE_CURRENT_SOURCE_DIR}/victims/works.cc -o ${works}_as_it_is.s
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/number_guards ${works}_as_it_is.s > ${works}.s
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/number_guards ${works}_as_it_is.s --tell > ${works}_tells.s
  COMMAND ${CLEW_EXTENSION_COMPILER} -w -c ${works}.s -o ${works}.o
  COMMAND ${CLEW_EXTENSION_COMPILER} -w -c ${works}_tells.s -o ${works}_tells.o
  DEPENDS victims/works.cc number_guards VERBATIM)
add_executable(guarded_works ${works}.o)
target_link_libraries(guarded_works PRIVATE clew_guards)
add_executable(guarded_works_tells ${works}_tells.o victims/tells_guards.c)
set_source_files_properties(victims/tells_guards.c PROPERTIES
  COMPILE_OPTIONS "-O2;-Wall;-Wextra;-Werror")
foreach(name works works_tells)
  set_target_properties(guarded_${name} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY ${CLEW_GUARDED})
endforeach()
add_test(NAME record.told COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/told $<TARGET_FILE:clew>
  ${CLEW_GUARDED})
set_tests_properties(record.told PROPERTIES TIMEOUT 120 RUN_SERIAL ON LABELS live)
