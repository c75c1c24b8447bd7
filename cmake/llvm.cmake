# LLVM and lld: shared where we develop, static in the archive that leaves this machine (TENON_STATIC).
option(TENON_STATIC "link LLVM and every other library statically, libc aside" OFF)
if(TENON_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections,--as-needed)
  set(TENON_FMT fmt::fmt-header-only)
  # As Debian's LLVM was built, it asks for this library by the name that its shared form has.
  add_library(zstd::libzstd_shared INTERFACE IMPORTED GLOBAL)
  target_link_libraries(zstd::libzstd_shared INTERFACE zstd)
else()
  set(TENON_FMT fmt::fmt)
endif()

if(TENON_BUILD_COMPILER)
  find_package(LLVM 19.1 REQUIRED CONFIG)
endif()
if(TENON_STATIC)
  # An extension of LLVM's own pipelines, which are not run.
  foreach(library LLVMExtensions LLVMLTO LLVMPasses)
    get_target_property(needed ${library} INTERFACE_LINK_LIBRARIES)
    list(REMOVE_ITEM needed Polly)
    set_target_properties(${library} PROPERTIES INTERFACE_LINK_LIBRARIES "${needed}")
  endforeach()
endif()

# tenon_link_llvm(TARGET component…): what it needs of LLVM; `lld` among the components is lld as well.
function(tenon_link_llvm target)
  set(components ${ARGN})
  if(lld IN_LIST components)
    list(REMOVE_ITEM components lld)
    target_link_libraries(${target} PRIVATE lldELF lldWasm lldCommon)
  endif()
  target_link_directories(${target} PUBLIC ${LLVM_LIBRARY_DIRS})
  if(NOT TENON_STATIC)
    target_link_libraries(${target} PRIVATE LLVM-19)
    return()
  endif()
  llvm_map_components_to_libnames(libraries ${components})
  target_link_libraries(${target} PRIVATE ${libraries})
endfunction()

# tenon_llvm_stubs(TARGET architecture…): lld initializes every architecture and extension that its LLVM was built with; those
# that are not linked get functions that do nothing.
function(tenon_llvm_stubs target)
  if(NOT TENON_STATIC)
    return()
  endif()
  set(others ${LLVM_TARGETS_TO_BUILD})
  list(REMOVE_ITEM others ${ARGN})
  string(CONCAT text "// What lld calls of LLVM that is not linked.\n#include <llvm/Passes/PassPlugin.h>\n"
         "llvm::PassPluginLibraryInfo getPollyPluginInfo();\n"
         "llvm::PassPluginLibraryInfo getPollyPluginInfo() {\n"
         "  return {LLVM_PLUGIN_API_VERSION, \"\", \"\", [](llvm::PassBuilder&) {}};\n}\n")
  foreach(other IN LISTS others)
    foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
      string(APPEND text "extern \"C\" void LLVMInitialize${other}${part}();\n")
      string(APPEND text "extern \"C\" void LLVMInitialize${other}${part}() {}\n")
    endforeach()
  endforeach()
  set(source ${CMAKE_BINARY_DIR}/llvm_stubs.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "${text}")
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -fno-rtti SKIP_PRECOMPILE_HEADERS ON)
endfunction()
