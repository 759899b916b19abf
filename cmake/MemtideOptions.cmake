# Compiler settings that hold for every target.
option(MEMTIDE_BUILD_TESTS "Build unit, integration and benchmark programs" ON)
option(MEMTIDE_BUILD_FUZZERS "Build libFuzzer targets (needs clang)" OFF)
option(MEMTIDE_UNITY "Compile the files of a target several at a time: builds from nothing are twice as fast" OFF)
option(MEMTIDE_LTO "Optimise programs as a whole when they are linked; tests are linked as usual" OFF)
set(MEMTIDE_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined or thread")

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# Assertions of the standard library stay on in release builds: a daemon that stops at
# the fault is better than one that goes on with a broken invariant.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")

add_compile_options(-Wall -Wextra -Wconversion -Werror)
add_compile_definitions(_GLIBCXX_ASSERTIONS MEMTIDE_VERSION="${PROJECT_VERSION}")
# gcc 12 reports false positives of these inside coroutine frames and inlined library code.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
                      -Wno-dangling-pointer $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
else()
  # libstdc++ 12 uses what it deprecates (std::stable_sort); gcc does not look into system headers for that.
  add_compile_options(-Wno-deprecated-declarations)
endif()
if(MEMTIDE_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
  # Unnamed namespaces of several files in one: gcc takes what uses them for something from a header.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(MEMTIDE_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Objects have both: what the linker optimises, and plain code, so that a test program is linked in a second.
  add_compile_options(-flto=auto -ffat-lto-objects)
  add_link_options(-fno-lto)
  set(MEMTIDE_PROGRAM_LINK_OPTIONS -flto=auto)
endif()
if(MEMTIDE_SANITIZE)
  add_compile_options(-fsanitize=${MEMTIDE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MEMTIDE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND MEMTIDE_SANITIZE MATCHES "thread")
    add_compile_options(-Wno-tsan)
  endif()
endif()
include_directories(${CMAKE_SOURCE_DIR})

# Paths are cached relative to the source folder, so that clones of the repository share what is compiled.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
                                  CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)  # without it ccache passes by what uses precompiled headers
  endif()
endif()
