# Everything comes from Debian packages; scripts/setup lists them.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json url)
find_package(yaml-cpp REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(MEMKIND REQUIRED memkind)  # its header; the library is loaded when it is needed
pkg_check_modules(LIBCXL REQUIRED IMPORTED_TARGET libcxl)
pkg_check_modules(LIBKMOD REQUIRED IMPORTED_TARGET libkmod)
pkg_check_modules(LIBPCAP REQUIRED IMPORTED_TARGET libpcap)
pkg_check_modules(LIBSYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(LIBXXHASH REQUIRED IMPORTED_TARGET libxxhash)
if(MEMTIDE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# The allocator of the programs that allocate most: with glibc's, a fourth of a composition's cost was malloc, since
# what one thread allocates another one frees. Sanitizers bring their own.
add_library(memtide_allocator INTERFACE)
if(NOT MEMTIDE_SANITIZE AND NOT MEMTIDE_BUILD_FUZZERS)
  pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
  target_link_libraries(memtide_allocator INTERFACE PkgConfig::JEMALLOC)
endif()
