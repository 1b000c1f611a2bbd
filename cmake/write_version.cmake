# Run by the target wherry_version at build time. Outside a git checkout the commit is "unknown".
set(COMMIT unknown)
find_program(git git)
if(git AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE_DIR} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE head RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(COMMIT ${head})
    execute_process(COMMAND ${git} -C ${SOURCE_DIR} diff --quiet HEAD RESULT_VARIABLE dirty
                    ERROR_QUIET)
    if(dirty)
      string(APPEND COMMIT -dirty)
    endif()
  endif()
endif()
string(TOLOWER "${BUILD_TYPE}" BUILD_TYPE)
configure_file(${TEMPLATE} ${OUTPUT} @ONLY) # leaves an unchanged file alone
