# Headers that most of the tree includes are parsed once a preset, which saves about a third of a cold build. One set for the
# product, one for tests. The fuzz preset goes without, so that a missing include cannot hide for long.
option(MEMTIDE_PRECOMPILE "Precompile common headers" ON)

# memtide_precompile(TARGET product|tests)
function(memtide_precompile target kind)
  if(NOT MEMTIDE_PRECOMPILE)
    return()
  endif()
  set(owner memtide_precompiled_${kind})
  if(NOT TARGET ${owner})
    add_library(${owner} STATIC ${CMAKE_SOURCE_DIR}/cmake/precompiled/empty.cpp)
    # Whoever uses the headers must see them under the macros they were parsed with.
    target_link_libraries(${owner} PUBLIC Boost::json fmt::fmt spdlog::spdlog Threads::Threads)
    if(kind STREQUAL "tests")
      target_link_libraries(${owner} PUBLIC GTest::gmock)
    endif()
    # In angle brackets, so that the generated header names no clone's path and ccache knows it again.
    target_precompile_headers(${owner} PRIVATE <cmake/precompiled/${kind}.h>)
  endif()
  target_link_libraries(${target} PRIVATE ${owner})
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
