# memtide_library(NAME SOURCES ... DEPENDS ...): one static library a room.
function(memtide_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS})
  memtide_precompile(${name} product)
endfunction()

# What scripts/demo needs: all programs, no tests.
add_custom_target(programs)

# memtide_program(NAME SOURCES ... DEPENDS ...): a binary in build/bin, installed to bin.
function(memtide_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  target_link_options(${name} PRIVATE ${MEMTIDE_PROGRAM_LINK_OPTIONS})
  memtide_precompile(${name} product)
  add_dependencies(programs ${name})
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# memtide_test(NAME SOURCES ... DEPENDS ... [LABELS ...] [TIMEOUT seconds] [SERIAL]):
# a GoogleTest program whose cases are CTest tests of their own.
function(memtide_test name)
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  memtide_precompile(${name} tests)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  if(ARG_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# memtide_fuzzer(NAME SOURCES ... DEPENDS ...): a libFuzzer program; built in the fuzz preset only, by target `fuzzers`.
function(memtide_fuzzer name)
  if(NOT MEMTIDE_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
endfunction()

# memtide_rooms(a b c): add_subdirectory for each room that has a CMakeLists.txt.
macro(memtide_rooms)
  foreach(room ${ARGN})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/CMakeLists.txt)
      add_subdirectory(${room})
    endif()
  endforeach()
endmacro()
