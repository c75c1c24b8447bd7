# What `cmake --install --component runtime` puts in place: the runtime, its headers, and how others find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

# Code that was written for TVM's C++ runtime: beside Tenon::runtime or Tenon::runtime_static.
add_library(tenon_tvm_compat INTERFACE)
target_include_directories(tenon_tvm_compat INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/tenon/compat>
  $<INSTALL_INTERFACE:include> $<INSTALL_INTERFACE:include/tenon/compat>)
target_compile_features(tenon_tvm_compat INTERFACE cxx_std_17)
set_target_properties(tenon_tvm_compat PROPERTIES EXPORT_NAME tvm_compat)
add_library(Tenon::tvm_compat ALIAS tenon_tvm_compat)

install(TARGETS tenon_runtime_shared tenon_runtime_static tenon_tvm_compat EXPORT TenonRuntimeTargets COMPONENT runtime
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT TenonRuntimeTargets NAMESPACE Tenon:: DESTINATION ${package_dir} COMPONENT runtime)
# The same from the build folder: find_package(Tenon PATHS build).
export(EXPORT TenonRuntimeTargets NAMESPACE Tenon:: FILE ${CMAKE_BINARY_DIR}/TenonRuntimeTargets.cmake)
foreach(header c_api.h devices.h ffi_types.h ffi_values.hpp kernel_abi.h tenon.hpp value.hpp)
  install(FILES ${PROJECT_SOURCE_DIR}/include/tenon/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon
          COMPONENT runtime)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tenon/compat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon
        COMPONENT runtime)
install(TARGETS tenon_core DESTINATION ${CMAKE_INSTALL_LIBDIR}/tenon/${TENON_ARCH}-linux-gnu COMPONENT runtime)
install(FILES ${triple_dir}/libc_stub.so DESTINATION ${CMAKE_INSTALL_LIBDIR}/tenon/${TENON_ARCH}-linux-gnu
        COMPONENT runtime)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TenonConfig.cmake.in ${CMAKE_BINARY_DIR}/TenonConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TenonConfig.cmake ${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT runtime)
# tenon_package(NAME COMPONENT DESCRIPTION CFLAGS LIBS [REQUIRES]): a file for pkg-config.
function(tenon_package name component description cflags libs)
  set(requires ${ARGN})
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/tenon.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endfunction()
set(description "the tensor compiler Tenon")
tenon_package(tenon runtime "Runtime of ${description}: loads and calls compiled models" "" "-ltenon_runtime")
tenon_package(tenon-static runtime "Runtime of ${description}, linked statically" ""
              "\${libdir}/libtenon_runtime.a -ldl -pthread")
tenon_package(tenon-tvm-compat runtime "Names of TVM's C++ runtime, beside tenon or tenon-static" "-I\${includedir}/tenon/compat" "")
