# A room is a folder of src/ and one static library, wherry_<name>.
#
#   wherry_room(NAME [SHIPPED] [SOURCES <glob>...] [DEPENDS <room>...] [LIBRARIES <target>...])
#
# SOURCES defaults to *.cpp: a new file in the folder is compiled without a change here. DEPENDS
# names the rooms that this one may call; tests/link holds it to them. LIBRARIES are foreign.
# A SHIPPED room becomes part of libwherry. A folder without sources yet is an INTERFACE library.
function(wherry_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SHIPPED" "" "SOURCES;DEPENDS;LIBRARIES")
  if(NOT arg_SOURCES)
    set(arg_SOURCES *.cpp)
  endif()
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${arg_SOURCES})

  set(target wherry_${name})
  list(TRANSFORM arg_DEPENDS PREPEND wherry_ OUTPUT_VARIABLE depends)
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/src
                                                ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} ${scope} ${depends} ${arg_LIBRARIES})

  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set_property(GLOBAL APPEND PROPERTY WHERRY_ROOMS ${name})
  set_property(GLOBAL PROPERTY WHERRY_ROOM_${name}_FOLDER "${folder}")
  set_property(GLOBAL PROPERTY WHERRY_ROOM_${name}_DEPENDS "${arg_DEPENDS}")
  if(arg_SHIPPED)
    set_property(GLOBAL APPEND PROPERTY WHERRY_SHIPPED_ROOMS ${name})
  endif()
endfunction()

# Tells whether a room has sources, so that it has objects to link.
function(wherry_room_has_objects name result)
  get_target_property(type wherry_${name} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
