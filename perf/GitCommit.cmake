# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run at every build: writes the commit into a header, if it changed.
set(KINDEX_GIT_COMMIT "unknown")
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(
    COMMAND "${GIT_EXECUTABLE}" describe --always --dirty --abbrev=12
    WORKING_DIRECTORY "${SOURCE_DIR}"
    OUTPUT_VARIABLE described
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET
    RESULT_VARIABLE failed)
  if(NOT failed)
    set(KINDEX_GIT_COMMIT "${described}")
  endif()
endif()
configure_file("${SOURCE_DIR}/GitCommit.hpp.in" "${OUTPUT}" @ONLY)
