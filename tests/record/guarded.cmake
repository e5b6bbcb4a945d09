# Programs that their compilers have put guards into, as users build theirs (clew/guards.h). NAME,
# the compiler, the source, and how it is compiled; what guards call is an object of its own.
find_program(CLEW_EXTENSION_COMPILER NAMES clang-16 clang)
find_program(CLEW_GUARDS_GCC NAMES gcc)
set(CLEW_GUARDED ${CMAKE_CURRENT_BINARY_DIR}/guarded)
set(CLEW_GUARDED_FILES "")
function(clew_guarded name compiler source)
  cmake_parse_arguments(PARSE_ARGV 3 own "" "" "FLAGS;LIBRARIES")
  set(file ${CLEW_GUARDED}/${name})
  set(language c)
  if(source MATCHES "\\.cc$")
    set(language c++)
    list(APPEND own_LIBRARIES -lstdc++)
  endif()
  add_custom_command(OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CLEW_GUARDED}
    COMMAND ${compiler} -x ${language} -g -pthread ${own_FLAGS}
            ${CMAKE_CURRENT_SOURCE_DIR}/victims/${source}
            -include ${CMAKE_SOURCE_DIR}/include/clew/guards.h ${own_LIBRARIES} -o ${file}
    DEPENDS victims/${source} ${CMAKE_SOURCE_DIR}/include/clew/guards.h VERBATIM)
  set(CLEW_GUARDED_FILES ${CLEW_GUARDED_FILES} ${file} PARENT_SCOPE)
endfunction()
if(NOT CLEW_EXTENSION_COMPILER)
  add_test(NAME record.guarded COMMAND ${CMAKE_COMMAND} -E echo "skipped: no clang")
  set_tests_properties(record.guarded PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
  return()
endif()
set(CLEW_GUARDS -fno-sanitize-link-runtime -fsanitize-coverage=trace-pc-guard)
foreach(level O0 O2)
  foreach(name steps throws crashes)
    set(source ${name}.c)
    if(name STREQUAL throws)
      set(source throws.cc)
    endif()
    clew_guarded(${name}_${level} ${CLEW_EXTENSION_COMPILER} ${source} FLAGS -${level} -w
                 -fno-jump-tables ${CLEW_GUARDS})
    clew_guarded(${name}_all_${level} ${CLEW_EXTENSION_COMPILER} ${source} FLAGS -${level} -w
                 -fno-jump-tables ${CLEW_GUARDS},no-prune)
  endforeach()
endforeach()
clew_guarded(threads ${CLEW_EXTENSION_COMPILER} threads.c FLAGS -O2 -w ${CLEW_GUARDS})
clew_guarded(processes ${CLEW_EXTENSION_COMPILER} processes.c FLAGS -O2 -w ${CLEW_GUARDS})
if(CLEW_GUARDS_GCC)
  clew_guarded(steps_gcc_O0 ${CLEW_GUARDS_GCC} steps.c FLAGS -O0 -w -fno-jump-tables
               -fsanitize-coverage=trace-pc -fno-optimize-sibling-calls)
endif()
# As an object that is linked.
add_custom_command(OUTPUT ${CLEW_GUARDED}/linked
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CLEW_GUARDED}
  COMMAND ${CLEW_EXTENSION_COMPILER} -g -O2 -w ${CLEW_GUARDS} -c -o ${CLEW_GUARDED}/linked_crashes.o
          ${CMAKE_CURRENT_SOURCE_DIR}/victims/crashes.c
  COMMAND ${CLEW_EXTENSION_COMPILER} -x c -Wall -Wextra -Wpedantic -Werror -O2 -c
          -o ${CLEW_GUARDED}/guards.o -include ${CMAKE_SOURCE_DIR}/include/clew/guards.h /dev/null
  COMMAND ${CLEW_EXTENSION_COMPILER} ${CLEW_GUARDED}/linked_crashes.o ${CLEW_GUARDED}/guards.o
          -pthread -o ${CLEW_GUARDED}/linked
  DEPENDS victims/crashes.c ${CMAKE_SOURCE_DIR}/include/clew/guards.h VERBATIM)
add_custom_target(recorded_guarded ALL DEPENDS ${CLEW_GUARDED_FILES} ${CLEW_GUARDED}/linked)
add_test(NAME record.guarded COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/guarded $<TARGET_FILE:clew>
  ${CLEW_GUARDED})
set_tests_properties(record.guarded PROPERTIES TIMEOUT 300 LABELS live)
