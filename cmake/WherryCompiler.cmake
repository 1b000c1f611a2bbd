# How every target of this tree is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Sanitizer: quick to compile, frames and lines in every report, checked standard containers.
set(CMAKE_CXX_FLAGS_SANITIZER "-O1 -gline-tables-only -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  string(REPLACE "-gline-tables-only" "-g1" CMAKE_CXX_FLAGS_SANITIZER "${CMAKE_CXX_FLAGS_SANITIZER}")
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(WHERRY_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: false alarm on `"literal" + std::string` when optimising.
  add_compile_options(-Wno-restrict)
endif()

if(WHERRY_SANITIZE)
  add_compile_options(-fsanitize=${WHERRY_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WHERRY_SANITIZE})
endif()
if(WHERRY_LIBFUZZER)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(WHERRY_CCACHE ccache)
if(WHERRY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the checkout: another checkout of the same text hits the same entries.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${WHERRY_CCACHE})
endif()

include(CheckLinkerFlag)
find_program(WHERRY_MOLD mold)
if(WHERRY_MOLD)
  check_linker_flag(CXX -fuse-ld=mold WHERRY_USE_MOLD)
  if(WHERRY_USE_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
add_link_options(-Wl,--as-needed)
