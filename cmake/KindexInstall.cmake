# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Installs Kindex as a package that find_package(kindex) finds, and describes the
# build tree in the same way, so that a project can use either.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kindex")

install(
  TARGETS kindex
  EXPORT kindexTargets
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/kindex"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(
  EXPORT kindexTargets
  NAMESPACE kindex::
  DESTINATION "${package_dir}")
export(EXPORT kindexTargets NAMESPACE kindex::
       FILE "${PROJECT_BINARY_DIR}/kindexTargets.cmake")

write_basic_package_version_file("${PROJECT_BINARY_DIR}/kindexConfigVersion.cmake"
                                 COMPATIBILITY SameMajorVersion)

# kindex_write_config(<file> <folder of the Kokkos package>)
function(kindex_write_config file kokkos)
  set(Kindex_CONFIG_KOKKOS_DIR "${kokkos}")
  configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/kindexConfig.cmake.in" "${file}"
    INSTALL_DESTINATION "${package_dir}"
    NO_CHECK_REQUIRED_COMPONENTS_MACRO NO_SET_AND_CHECK_MACRO)
endfunction()

kindex_write_config("${PROJECT_BINARY_DIR}/kindexConfig.cmake"
                    "${Kindex_KOKKOS_PACKAGE_DIR}")

# Where the same Kokkos will be found from the installed package.
if(Kindex_KOKKOS_UNPACKED)
  # The build folder may go, so the unpacked Kokkos comes along.
  install(DIRECTORY "${Kindex_KOKKOS_UNPACKED}/"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/kindex/kokkos" USE_SOURCE_PERMISSIONS
          PATTERN "share" EXCLUDE PATTERN "gconv" EXCLUDE)
  file(RELATIVE_PATH kokkos "${Kindex_KOKKOS_UNPACKED}"
       "${Kindex_KOKKOS_PACKAGE_DIR}")
  string(PREPEND kokkos
         "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_LIBDIR}/kindex/kokkos/")
elseif(Kindex_KOKKOS_BUILT_HERE)
  # Kokkos installs itself along with Kindex.
  set(kokkos "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_LIBDIR}/cmake/Kokkos")
else()
  set(kokkos "${Kindex_KOKKOS_PACKAGE_DIR}")
endif()
kindex_write_config("${PROJECT_BINARY_DIR}/install/kindexConfig.cmake" "${kokkos}")

install(FILES "${PROJECT_BINARY_DIR}/install/kindexConfig.cmake"
              "${PROJECT_BINARY_DIR}/kindexConfigVersion.cmake"
        DESTINATION "${package_dir}")
