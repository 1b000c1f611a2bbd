# What `cmake --install` puts where: headers, library, command, CMake package, pkg-config file.
if(NOT TARGET wherry)
  return()
endif()
include(CMakePackageConfigHelpers)

install(TARGETS wherry EXPORT wherryTargets
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/wherry DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.hpp PATTERN *.h)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET wherry_command)
  install(TARGETS wherry_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wherry)
install(EXPORT wherryTargets NAMESPACE wherry:: DESTINATION ${package_dir})
configure_package_config_file(cmake/wherryConfig.cmake.in wherryConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 each minor version may break its callers' source.
write_basic_package_version_file(wherryConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/wherryConfig.cmake ${PROJECT_BINARY_DIR}/wherryConfigVersion.cmake
        DESTINATION ${package_dir})

# tl/expected.hpp has no pkg-config file everywhere: where the compiler would not look, say where.
get_target_property(expected_dirs tl::expected INTERFACE_INCLUDE_DIRECTORIES)
list(REMOVE_DUPLICATES expected_dirs)
list(REMOVE_ITEM expected_dirs ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
list(TRANSFORM expected_dirs PREPEND " -I")
list(JOIN expected_dirs "" WHERRY_PC_EXPECTED_CFLAGS)
# The prefix as seen from where the file lies, so that an installed tree may be moved.
file(RELATIVE_PATH WHERRY_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" WHERRY_PC_PREFIX ${WHERRY_PC_PREFIX})
configure_file(cmake/wherry.pc.in wherry.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/wherry.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
