# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Finds or makes Kokkos, the first of these that works:
#
#  1. an installed one: Kokkos_ROOT, Kokkos_DIR, CMAKE_PREFIX_PATH, the system;
#  2. the source tree Kindex_KOKKOS_SOURCE_DIR, built along with Kindex;
#  3. upstream's release, fetched and built along with Kindex;
#  4. Debian's binary package, unpacked below the build folder.
#
# Afterwards there is Kokkos::kokkos in every directory of the project, and
#
#  Kindex_KOKKOS_PACKAGE_DIR     the folder of a KokkosConfig.cmake that describes
#                                the same Kokkos to other projects
#  Kindex_KOKKOS_UNPACKED        in case 4, the prefix of the unpacked package
#  Kindex_KOKKOS_BUILT_HERE      true in cases 2 and 3
#
# and Kokkos_VERSION, Kokkos_DEVICES from Kokkos itself.

include_guard(DIRECTORY)

set(Kindex_KOKKOS_MINIMUM 5.0)
set(Kindex_KOKKOS_RELEASE 5.2.2)
set(Kindex_KOKKOS_REPOSITORY "https://github.com/kokkos/kokkos.git")
set(Kindex_KOKKOS_SOURCE_DIR ""
    CACHE PATH "A Kokkos source tree, built along when no Kokkos is installed")

# Whether upstream answers. A firewall that drops packets would let a clone hang
# for minutes, so ask for one tag and allow ten seconds.
function(kindex_kokkos_upstream_answers result)
  set(${result} FALSE PARENT_SCOPE)
  find_package(Git QUIET)
  if(NOT Git_FOUND)
    message(STATUS "Kindex: no git here to fetch Kokkos with")
    return()
  endif()
  execute_process(
    COMMAND
      ${CMAKE_COMMAND} -E env GIT_TERMINAL_PROMPT=0 GIT_HTTP_LOW_SPEED_LIMIT=1000
      GIT_HTTP_LOW_SPEED_TIME=5 ${GIT_EXECUTABLE} ls-remote --exit-code
      ${Kindex_KOKKOS_REPOSITORY} refs/tags/${Kindex_KOKKOS_RELEASE}
    TIMEOUT 10
    RESULT_VARIABLE status
    OUTPUT_QUIET ERROR_VARIABLE error)
  if(status STREQUAL "0")
    set(${result} TRUE PARENT_SCOPE)
  else()
    string(STRIP "${error}" error)
    string(REGEX REPLACE "\n.*" "" error "${error}")
    if(NOT error)
      set(error "${status}")
    endif()
    message(STATUS "Kindex: Kokkos upstream cannot be reached (${error})")
  endif()
endfunction()

# Chooses the devices of a Kokkos that is built along; what the user has said
# (-DKokkos_ENABLE_CUDA=..., -DKokkos_ARCH_...) stays.
function(kindex_kokkos_choose_devices)
  if(NOT DEFINED Kokkos_ENABLE_OPENMP)
    set(Kokkos_ENABLE_OPENMP ON CACHE BOOL "Kokkos on the cores of the host")
  endif()
  if(DEFINED Kokkos_ENABLE_CUDA)
    return()
  endif()
  find_program(Kindex_NVCC nvcc DOC "The CUDA compiler")
  mark_as_advanced(Kindex_NVCC)
  if(NOT Kindex_NVCC)
    return()
  endif()
  get_cmake_property(variables CACHE_VARIABLES)
  list(FILTER variables INCLUDE REGEX
       "^Kokkos_ARCH_(MAXWELL|PASCAL|VOLTA|TURING|AMPERE|ADA|HOPPER|BLACKWELL)")
  set(why)
  foreach(variable IN LISTS variables)
    if(${variable})
      set(why "${variable}")
    endif()
  endforeach()
  if(NOT why)
    execute_process(
      COMMAND nvidia-smi --query-gpu=name --format=csv,noheader
      TIMEOUT 20
      RESULT_VARIABLE status
      OUTPUT_VARIABLE gpu ERROR_QUIET)
    if(status STREQUAL "0" AND gpu)
      string(REGEX REPLACE "\n.*" "" why "${gpu}")
    endif()
  endif()
  if(why)
    message(STATUS "Kindex: Kokkos with CUDA (${Kindex_NVCC}, ${why})")
    set(Kokkos_ENABLE_CUDA ON CACHE BOOL "Kokkos on NVIDIA GPUs")
  endif()
endfunction()

macro(kindex_find_kokkos)
  set(Kindex_KOKKOS_UNPACKED)
  set(Kindex_KOKKOS_BUILT_HERE FALSE)
  set(Kindex_KOKKOS_PACKAGE_DIR)
  set(kindex_unpack_dir "${CMAKE_BINARY_DIR}/_deps/kokkos-debian")

  # An earlier configure found the unpacked package; that must not hide a Kokkos
  # that was installed since.
  string(FIND "${Kokkos_DIR}" "${kindex_unpack_dir}/" kindex_at)
  if(kindex_at EQUAL 0)
    unset(Kokkos_DIR CACHE)
  endif()

  set(kindex_asked_for)
  if(Kokkos_DIR)
    set(kindex_asked_for "Kokkos_DIR=${Kokkos_DIR}")
  elseif(Kokkos_ROOT)
    set(kindex_asked_for "Kokkos_ROOT=${Kokkos_ROOT}")
  elseif(DEFINED ENV{Kokkos_ROOT})
    set(kindex_asked_for "Kokkos_ROOT=$ENV{Kokkos_ROOT}")
  endif()

  set(kindex_how)
  if(TARGET Kokkos::kokkos)
    set(kindex_how "already part of this build")
    if(DEFINED Kokkos_BINARY_DIR)
      set(Kindex_KOKKOS_BUILT_HERE TRUE)
    endif()
  else()
    find_package(Kokkos ${Kindex_KOKKOS_MINIMUM} CONFIG QUIET)
    if(Kokkos_FOUND)
      set(kindex_how "installed in ${Kokkos_DIR}")
    else()
      foreach(kindex_version IN LISTS Kokkos_CONSIDERED_VERSIONS)
        message(STATUS "Kindex: passing over Kokkos ${kindex_version}, \
${Kindex_KOKKOS_MINIMUM} is needed (${Kokkos_CONSIDERED_CONFIGS})")
      endforeach()
      if(kindex_asked_for)
        message(
          FATAL_ERROR
            "Kindex: ${kindex_asked_for} leads to no usable Kokkos of version \
${Kindex_KOKKOS_MINIMUM} or newer. Correct it, or unset it to let Kindex look \
further by itself.")
      endif()
    endif()
  endif()

  if(NOT kindex_how AND Kindex_KOKKOS_SOURCE_DIR)
    if(NOT EXISTS "${Kindex_KOKKOS_SOURCE_DIR}/core/src/Kokkos_Core.hpp")
      message(FATAL_ERROR "Kindex: Kindex_KOKKOS_SOURCE_DIR is not a Kokkos \
source tree: ${Kindex_KOKKOS_SOURCE_DIR}")
    endif()
    kindex_kokkos_choose_devices()
    add_subdirectory("${Kindex_KOKKOS_SOURCE_DIR}"
                     "${CMAKE_BINARY_DIR}/_deps/kokkos-build")
    set(Kindex_KOKKOS_BUILT_HERE TRUE)
    set(kindex_how "built along from ${Kindex_KOKKOS_SOURCE_DIR}")
  endif()

  if(NOT kindex_how AND NOT EXISTS "${kindex_unpack_dir}/done")
    set(kindex_answers TRUE)
    if(NOT FETCHCONTENT_SOURCE_DIR_KOKKOS AND NOT FETCHCONTENT_FULLY_DISCONNECTED
       AND NOT EXISTS "${CMAKE_BINARY_DIR}/_deps/kokkos-src/CMakeLists.txt")
      kindex_kokkos_upstream_answers(kindex_answers)
    endif()
    if(kindex_answers)
      message(STATUS "Kindex: fetching Kokkos ${Kindex_KOKKOS_RELEASE}")
      kindex_kokkos_choose_devices()
      include(FetchContent)
      FetchContent_Declare(
        kokkos
        GIT_REPOSITORY ${Kindex_KOKKOS_REPOSITORY}
        GIT_TAG ${Kindex_KOKKOS_RELEASE}
        GIT_SHALLOW TRUE)
      FetchContent_MakeAvailable(kokkos)
      set(Kindex_KOKKOS_BUILT_HERE TRUE)
      set(kindex_how "fetched from ${Kindex_KOKKOS_REPOSITORY}")
    endif()
  endif()

  if(NOT kindex_how)
    include(KindexDebianKokkos)
    kindex_unpack_debian_kokkos("${kindex_unpack_dir}" Kindex_KOKKOS_UNPACKED)
    find_package(Kokkos ${Kindex_KOKKOS_MINIMUM} REQUIRED CONFIG
                 PATHS "${Kindex_KOKKOS_UNPACKED}" NO_DEFAULT_PATH)
    set(kindex_how "Debian's package, unpacked in ${Kindex_KOKKOS_UNPACKED}")
  endif()

  if(Kindex_KOKKOS_BUILT_HERE)
    get_directory_property(Kokkos_VERSION DIRECTORY "${Kokkos_SOURCE_DIR}"
                           DEFINITION Kokkos_VERSION)
    get_directory_property(Kokkos_DEVICES DIRECTORY "${Kokkos_SOURCE_DIR}"
                           DEFINITION KOKKOS_ENABLED_DEVICES)
    set(Kindex_KOKKOS_PACKAGE_DIR "${Kokkos_BINARY_DIR}")
  else()
    set(Kindex_KOKKOS_PACKAGE_DIR "${Kokkos_DIR}")
  endif()
  if(Kokkos_VERSION AND Kokkos_VERSION VERSION_LESS Kindex_KOKKOS_MINIMUM)
    message(FATAL_ERROR "Kindex: needs Kokkos ${Kindex_KOKKOS_MINIMUM} or newer, \
but got ${Kokkos_VERSION}, ${kindex_how}")
  endif()
  list(JOIN Kokkos_DEVICES ", " kindex_devices)
  if("$CACHE{Kokkos_ENABLE_CUDA}" AND NOT "CUDA" IN_LIST Kokkos_DEVICES)
    message(FATAL_ERROR "Kindex: CUDA was asked for (Kokkos_ENABLE_CUDA), but \
Kokkos ${Kokkos_VERSION}, ${kindex_how}, is for ${kindex_devices} alone. Pass \
-DKokkos_ROOT=<prefix> of one with CUDA, or its sources with \
-DKindex_KOKKOS_SOURCE_DIR=<folder>.")
  endif()
  message(
    STATUS "Kindex: Kokkos ${Kokkos_VERSION} (${kindex_devices}), ${kindex_how}")
endmacro()

get_directory_property(kindex_imported_before IMPORTED_TARGETS)
kindex_find_kokkos()
if(Kindex_KOKKOS_UNPACKED)
  # Below <prefix>/lib, where the unpacked package is installed (KindexInstall).
  file(RELATIVE_PATH Kindex_KOKKOS_INSTALL_LIBDIR "${Kindex_KOKKOS_UNPACKED}"
       "${Kokkos_DIR}/../..")
  string(PREPEND Kindex_KOKKOS_INSTALL_LIBDIR "kindex/kokkos/")
else()
  set(Kindex_KOKKOS_INSTALL_LIBDIR)
endif()

# Imported targets are known in one directory and below. A project that takes
# Kindex in by add_subdirectory links to Kokkos through it, from above.
if(NOT PROJECT_IS_TOP_LEVEL)
  get_directory_property(kindex_imported IMPORTED_TARGETS)
  list(REMOVE_ITEM kindex_imported ${kindex_imported_before})
  foreach(target IN LISTS kindex_imported)
    set_property(TARGET ${target} PROPERTY IMPORTED_GLOBAL TRUE)
  endforeach()
endif()
