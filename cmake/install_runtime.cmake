# What `cmake --install --component runtime` puts in place: the runtime, its headers, and how others find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

install(TARGETS tenon_runtime_shared tenon_runtime_static EXPORT TenonRuntimeTargets COMPONENT runtime
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT TenonRuntimeTargets NAMESPACE Tenon:: DESTINATION ${package_dir} COMPONENT runtime)
# The same from the build folder: find_package(Tenon PATHS build).
export(EXPORT TenonRuntimeTargets NAMESPACE Tenon:: FILE ${CMAKE_BINARY_DIR}/TenonRuntimeTargets.cmake)
foreach(header c_api.h devices.h ffi_types.h kernel_abi.h tenon.hpp)
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
configure_file(${PROJECT_SOURCE_DIR}/cmake/tenon.pc.in ${CMAKE_BINARY_DIR}/tenon.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)
