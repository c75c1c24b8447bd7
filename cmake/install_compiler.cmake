# What `cmake --install --component compiler` puts in place beside the runtime: libtenon_compiler and its headers. The
# commands are installed by tools/.
install(TARGETS tenon_compiler EXPORT TenonCompilerTargets COMPONENT compiler INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT TenonCompilerTargets NAMESPACE Tenon:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon COMPONENT compiler)
export(EXPORT TenonCompilerTargets NAMESPACE Tenon:: FILE ${CMAKE_BINARY_DIR}/TenonCompilerTargets.cmake)
foreach(header te.hpp ir.hpp schedule.hpp stage_primitives.def compiler.hpp operators.hpp tuning.hpp)
  install(FILES ${PROJECT_SOURCE_DIR}/include/tenon/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon
          COMPONENT compiler)
endforeach()
tenon_package(tenon-compiler compiler "${description} as a library" "" "-ltenon_compiler" tenon)
