# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# kindex_use_runtime(<target>)
#
# Lets the target, a program or library of this build, find its shared libraries
# wherever it is installed: the ones beside it and the ones it was linked with.
# (In the build tree CMake does this by itself, and a Kokkos that needs a run-time
# loader of its own hands that on with Kokkos::kokkos, see KindexKokkos.cmake.)
function(kindex_use_runtime target)
  if(APPLE)
    set(origin "@loader_path")
  else()
    set(origin "\$ORIGIN")
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    file(RELATIVE_PATH to_lib "/prefix/${CMAKE_INSTALL_BINDIR}"
         "/prefix/${CMAKE_INSTALL_LIBDIR}")
    string(APPEND origin "/${to_lib}")
  endif()
  set(rpath "${origin}")
  if(Kindex_KOKKOS_INSTALL_LIBDIR)
    list(APPEND rpath "${origin}/${Kindex_KOKKOS_INSTALL_LIBDIR}")
  else()
    set_property(TARGET ${target} PROPERTY INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
  set_property(TARGET ${target} PROPERTY INSTALL_RPATH "${rpath}")
endfunction()
