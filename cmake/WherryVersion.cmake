# version_config.h, with the commit in it: looked at by every build, rewritten only when it changes,
# included by src/engine/version.cpp alone.
set(WHERRY_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
add_custom_target(
  wherry_version
  COMMAND
    ${CMAKE_COMMAND} -D SOURCE_DIR=${PROJECT_SOURCE_DIR}
    -D TEMPLATE=${PROJECT_SOURCE_DIR}/cmake/version_config.h.in
    -D OUTPUT=${WHERRY_GENERATED_DIR}/version/version_config.h
    -D VERSION=${PROJECT_VERSION}
    -D "COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    -D BUILD_TYPE=${CMAKE_BUILD_TYPE} -D "SANITIZERS=${WHERRY_SANITIZE}"
    -P ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${WHERRY_GENERATED_DIR}/version/version_config.h
  COMMENT "Looking at the commit"
  VERBATIM)
