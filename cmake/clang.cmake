# Toolchain file of the sanitizer presets: the clang that tools/compilers names, unless the
# environment names a compiler itself (CXX=g++-13 cmake --preset asan).
if(NOT DEFINED ENV{CXX})
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../tools/compilers versions REGEX "^CLANG_VERSIONS=")
  string(REGEX MATCHALL "[0-9]+" versions "${versions}")
  list(TRANSFORM versions PREPEND "clang++-" OUTPUT_VARIABLE names)
  find_program(WHERRY_CLANGXX NAMES ${names} REQUIRED)
  set(CMAKE_CXX_COMPILER ${WHERRY_CLANGXX})
endif()
