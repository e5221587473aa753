# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Kokkos from Debian's binary packages, unpacked below the build folder: no root,
# and nothing of the system changes.
#
#  kindex_unpack_debian_kokkos(<folder> <prefix-variable>)
#
# Leaves a Kokkos package below <folder> that any project can find and that may
# be moved, and its prefix in <prefix-variable>. Does nothing but that when the
# folder is already filled.
#
# The package was compiled for a newer C and C++ library than stable systems
# have. Where the system's are too old, Debian's newer ones are unpacked too, and
# every program that links to Kokkos::kokkos is told to start with their loader.

include_guard(GLOBAL)

# The host's own Debian mirror is the one most likely to be reachable.
function(kindex_guess_debian_mirror result)
  set(${result} "http://deb.debian.org/debian" PARENT_SCOPE)
  file(GLOB lists /etc/apt/sources.list /etc/apt/sources.list.d/*.list
       /etc/apt/sources.list.d/*.sources)
  foreach(list IN LISTS lists)
    file(STRINGS "${list}" lines REGEX "^(deb |URIs:)")
    foreach(line IN LISTS lines)
      if(line MATCHES "[ \t](https?://[^ \t]+/debian)/?([ \t]|$)")
        set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

kindex_guess_debian_mirror(kindex_mirror)
set(Kindex_KOKKOS_DEBIAN_MIRROR "${kindex_mirror}"
    CACHE STRING "Debian mirror to take Kokkos from when upstream is unreachable")
mark_as_advanced(Kindex_KOKKOS_DEBIAN_MIRROR)

set(Kindex_DEBIAN_KOKKOS_SUITE sid)
# Whose C and C++ library to unpack, the first that satisfies Kokkos.
set(Kindex_DEBIAN_RUNTIME_SUITES trixie sid)
set(Kindex_DEBIAN_RUNTIME_PACKAGES libc6 libstdc++6 libgcc-s1 libgomp1)

# Runs a command with the private apt state below <folder>.
function(kindex_apt folder what timeout)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env "APT_CONFIG=${folder}/apt/apt.conf" LC_ALL=C
            ${ARGN}
    WORKING_DIRECTORY "${folder}/debs"
    TIMEOUT ${timeout}
    RESULT_VARIABLE status
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status STREQUAL "0")
    message(
      FATAL_ERROR
        "Kindex: could not ${what} (${status}):\n${output}\n"
        "Kokkos is needed. Install Kokkos ${Kindex_KOKKOS_MINIMUM} or newer and "
        "pass -DKokkos_ROOT=<prefix>, or unpack its sources and pass "
        "-DKindex_KOKKOS_SOURCE_DIR=<folder>, or name a Debian mirror that "
        "answers with -DKindex_KOKKOS_DEBIAN_MIRROR=<url>.")
  endif()
  set(kindex_apt_output "${output}" PARENT_SCOPE)
endfunction()

# Lists and cache of its own, the keyring that Debian ships, and of the host's
# configuration nothing but how to reach the network. Signatures are checked; that
# an index is fresh is not, as mirrors inside closed networks seldom are.
function(kindex_prepare_apt folder)
  set(keyring "/usr/share/keyrings/debian-archive-keyring.gpg")
  if(NOT EXISTS "${keyring}")
    message(
      FATAL_ERROR
        "Kindex: ${keyring} is missing, so a Debian mirror cannot be trusted. "
        "Install the package debian-archive-keyring.")
  endif()
  set(apt "${folder}/apt")
  file(REMOVE_RECURSE "${apt}")
  file(MAKE_DIRECTORY "${apt}/lists/partial" "${apt}/cache/archives/partial"
       "${apt}/log" "${apt}/parts")
  file(WRITE "${apt}/status" "")
  set(suites ${Kindex_DEBIAN_KOKKOS_SUITE} ${Kindex_DEBIAN_RUNTIME_SUITES})
  list(REMOVE_DUPLICATES suites)
  file(
    WRITE "${apt}/debian.sources"
    "Types: deb\nURIs: ${Kindex_KOKKOS_DEBIAN_MIRROR}\n"
    "Suites: ${suites}\nComponents: main\nSigned-By: ${keyring}\n")
  file(READ "${apt}/debian.sources" sources)
  string(REPLACE ";" " " sources "${sources}")
  file(WRITE "${apt}/debian.sources" "${sources}")

  execute_process(
    COMMAND apt-config dump
    OUTPUT_VARIABLE host
    RESULT_VARIABLE status ERROR_QUIET)
  if(NOT status STREQUAL "0")
    message(
      FATAL_ERROR
        "Kindex: no Kokkos is installed, upstream cannot be reached, and this "
        "system has no apt to fetch Debian's package with. Install Kokkos "
        "${Kindex_KOKKOS_MINIMUM} or newer and pass -DKokkos_ROOT=<prefix>, or "
        "unpack its sources and pass -DKindex_KOKKOS_SOURCE_DIR=<folder>.")
  endif()
  string(REGEX MATCHALL
               "Acquire::[Hh][Tt][Tt][Pp][Ss]?::[^\n]* \"[^\n]*\"" network "${host}")
  list(TRANSFORM network APPEND ";\n")
  string(REPLACE ";\n;" ";\n" network "${network}")
  file(
    WRITE "${apt}/apt.conf"
    ${network}
    "Dir::State \"${apt}\";\n"
    "Dir::State::lists \"${apt}/lists\";\n"
    "Dir::State::status \"${apt}/status\";\n"
    "Dir::Cache \"${apt}/cache\";\n"
    "Dir::Log \"${apt}/log\";\n"
    "Dir::Etc::main \"/dev/null\";\n"
    "Dir::Etc::parts \"${apt}/parts\";\n"
    "Dir::Etc::sourcelist \"${apt}/debian.sources\";\n"
    "Dir::Etc::sourceparts \"/dev/null\";\n"
    "Dir::Etc::preferences \"/dev/null\";\n"
    "Dir::Etc::preferencesparts \"${apt}/parts\";\n"
    "Dir::Etc::trusted \"/dev/null\";\n"
    "Dir::Etc::trustedparts \"${apt}/parts\";\n"
    "APT::Architectures { \"${kindex_debian_architecture}\"; };\n"
    "APT::Architecture \"${kindex_debian_architecture}\";\n"
    "APT::Sandbox::User \"root\";\n"
    "APT::Update::Error-Mode \"any\";\n"
    "Acquire::Check-Valid-Until \"false\";\n"
    "Acquire::Languages \"none\";\n"
    "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n"
    "Acquire::http::Timeout \"20\";\n"
    "Acquire::https::Timeout \"20\";\n"
    "Acquire::Retries \"2\";\n"
    "Acquire::PDiffs \"false\";\n")
endfunction()

# Downloads packages (name/suite) and unpacks them into <root>.
function(kindex_unpack_packages folder root)
  file(REMOVE_RECURSE "${folder}/debs")
  file(MAKE_DIRECTORY "${folder}/debs" "${root}")
  list(JOIN ARGN " " names)
  kindex_apt("${folder}" "download ${names}" 300 apt-get download ${ARGN})
  file(GLOB debs "${folder}/debs/*.deb")
  foreach(deb IN LISTS debs)
    get_filename_component(name "${deb}" NAME)
    string(REPLACE "%3a" ":" name "${name}")
    message(STATUS "Kindex:   ${name}")
    execute_process(COMMAND dpkg-deb --extract "${deb}" "${root}"
                    RESULT_VARIABLE status)
    if(NOT status STREQUAL "0")
      message(FATAL_ERROR "Kindex: could not unpack ${deb} (${status})")
    endif()
  endforeach()
  file(REMOVE_RECURSE "${folder}/debs")
endfunction()

# What <command ...> (a loader that lists a library's needs) misses.
function(kindex_missing_symbols result)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${ARGN}
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output
    RESULT_VARIABLE status)
  string(REGEX MATCHALL "[^ \n]+' not found|[^ \t\n]+ => not found" missing
               "${output}")
  if(NOT missing AND NOT status STREQUAL "0")
    set(missing "${output}")
  endif()
  set(${result} "${missing}" PARENT_SCOPE)
endfunction()

function(kindex_unpack_debian_kokkos folder prefix_variable)
  set(prefix "${folder}/root/usr")
  set(${prefix_variable} "${prefix}" PARENT_SCOPE)
  if(EXISTS "${folder}/done")
    return()
  endif()

  execute_process(
    COMMAND dpkg --print-architecture
    OUTPUT_VARIABLE kindex_debian_architecture
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REMOVE_RECURSE "${folder}")
  file(MAKE_DIRECTORY "${folder}/debs")
  kindex_prepare_apt("${folder}")
  message(STATUS "Kindex: fetching Debian's Kokkos from \
${Kindex_KOKKOS_DEBIAN_MIRROR}")
  kindex_apt("${folder}" "read the index of ${Kindex_KOKKOS_DEBIAN_MIRROR}" 240
             apt-get update)
  set(suite ${Kindex_DEBIAN_KOKKOS_SUITE})
  kindex_apt("${folder}" "find libkokkos-dev in ${suite}" 60 apt-cache show
             --no-all-versions libkokkos-dev/${suite})
  if(NOT kindex_apt_output MATCHES "Depends:[^\n]*(libkokkos[0-9][0-9.]*)")
    message(FATAL_ERROR "Kindex: libkokkos-dev in ${suite} names no run-time \
package:\n${kindex_apt_output}")
  endif()
  kindex_unpack_packages("${folder}" "${folder}/root" libkokkos-dev/${suite}
                         ${CMAKE_MATCH_1}/${suite} kokkos/${suite})

  file(GLOB core "${prefix}/lib/*/libkokkoscore.so")
  get_filename_component(libdir "${core}" DIRECTORY)
  kindex_missing_symbols(missing ldd "${core}")
  foreach(suite IN LISTS Kindex_DEBIAN_RUNTIME_SUITES)
    if(missing)
      list(GET missing 0 first)
      message(STATUS "Kindex: with the C and C++ library of Debian ${suite}, \
because here ${first}")
      list(TRANSFORM Kindex_DEBIAN_RUNTIME_PACKAGES APPEND "/${suite}"
           OUTPUT_VARIABLE packages)
      # Not beside Kokkos, whose folder CMake itself searches when it links.
      file(REMOVE_RECURSE "${prefix}/runtime")
      kindex_unpack_packages("${folder}" "${prefix}/runtime" ${packages})
      file(GLOB loader "${prefix}/runtime/usr/lib/*/ld-linux*.so.*"
           "${prefix}/runtime/usr/lib/*/ld64.so.*")
      list(GET loader 0 loader)
      get_filename_component(runtime "${loader}" DIRECTORY)
      kindex_missing_symbols(missing "${loader}" --library-path
                             "${runtime}:${libdir}" --list "${core}")
    endif()
  endforeach()
  if(missing)
    message(FATAL_ERROR "Kindex: Debian's Kokkos does not run here: ${missing}")
  endif()

  # The package expects to lie in /usr. Its targets may say where they lie
  # instead; and two of its static libraries have no objects and no file.
  set(config "${libdir}/cmake/Kokkos")
  file(READ "${config}/KokkosTargets.cmake" text)
  string(REPLACE "\"/usr/include" "\"\${_IMPORT_PREFIX}/include" text "${text}")
  file(WRITE "${config}/KokkosTargets.cmake" "${text}")
  file(GLOB targets "${config}/KokkosTargets-*.cmake")
  foreach(file IN LISTS targets)
    file(READ "${file}" text)
    string(REGEX MATCHALL "/lib[a-z]+\\.a" archives "${text}")
    foreach(archive IN LISTS archives)
      if(NOT EXISTS "${libdir}${archive}")
        file(WRITE "${libdir}${archive}" "!<arch>\n")
      endif()
    endforeach()
  endforeach()

  # Programs find the package, and all that its libraries need in turn, through
  # their RPATH: not RUNPATH, which ends at a program's own needs.
  set(text
      "
# Added by Kindex: what a program needs to start, from where this package lies.
get_filename_component(_kindex_libdir \"\${CMAKE_CURRENT_LIST_DIR}/../..\" ABSOLUTE)
set(_kindex_program \"$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>\")
set_property(
  TARGET Kokkos::kokkoscore APPEND
  PROPERTY INTERFACE_LINK_OPTIONS LINKER:--disable-new-dtags
           \"$<\${_kindex_program}:LINKER:-rpath,\${_kindex_libdir}>\")
")
  if(loader)
    # The linker sees the system's older C and C++ library; what Kokkos needs of
    # the newer ones it must take on trust.
    file(RELATIVE_PATH to_runtime "${libdir}" "${runtime}")
    get_filename_component(name "${loader}" NAME)
    string(
      APPEND
      text
      "get_filename_component(_kindex_runtime \"\${_kindex_libdir}/${to_runtime}\" ABSOLUTE)
set_property(
  TARGET Kokkos::kokkoscore APPEND
  PROPERTY
    INTERFACE_LINK_OPTIONS
    \"$<\${_kindex_program}:LINKER:--allow-shlib-undefined>\"
    \"$<\${_kindex_program}:LINKER:-rpath,\${_kindex_runtime}>\"
    \"$<\${_kindex_program}:LINKER:--dynamic-linker=\${_kindex_runtime}/${name}>\")
unset(_kindex_runtime)
")
  endif()
  string(APPEND text "unset(_kindex_libdir)\nunset(_kindex_program)\n")
  file(APPEND "${config}/KokkosConfig.cmake" "${text}")

  file(REMOVE_RECURSE "${folder}/apt")
  file(WRITE "${folder}/done" "")
endfunction()
