# LLVM and lld: shared where we develop, static in the archive that leaves this machine (TENON_STATIC), and in programs that
# are started thousands of times (tenon_llvm_inside): a shared LLVM has 311,000 relocations, 17 of the 27 ms of processor time of every start.
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
  # An extension of LLVM's own pipelines, which are not run.
  foreach(library LLVMExtensions LLVMLTO LLVMPasses)
    get_target_property(needed ${library} INTERFACE_LINK_LIBRARIES)
    list(REMOVE_ITEM needed Polly)
    set_target_properties(${library} PROPERTIES INTERFACE_LINK_LIBRARIES "${needed}")
  endforeach()
endif()

# tenon_llvm_inside(TARGET): an executable that has what it needs of LLVM in itself, however other targets are linked.
function(tenon_llvm_inside target)
  if(TENON_STATIC)
    return()
  endif()
  set_target_properties(${target} PROPERTIES TENON_LLVM_INSIDE ON)
  target_link_options(${target} PRIVATE -no-pie -Wl,--gc-sections,--as-needed)
endfunction()

# tenon_link_llvm(TARGET component…): what it needs of LLVM; `lld` among the components is lld as well.
function(tenon_link_llvm target)
  set(components ${ARGN})
  if(lld IN_LIST components)
    list(REMOVE_ITEM components lld)
    target_link_libraries(${target} PRIVATE lldELF lldWasm lldCommon)
  endif()
  target_link_directories(${target} PUBLIC ${LLVM_LIBRARY_DIRS})
  llvm_map_components_to_libnames(libraries ${components})
  if(NOT TENON_STATIC)
    # Of the program that is linked in the end.
    set(inside "$<BOOL:$<TARGET_PROPERTY:TENON_LLVM_INSIDE>>")
    set(libraries "$<IF:${inside},${libraries},LLVM-19>")
  endif()
  target_link_libraries(${target} PRIVATE "${libraries}")
endfunction()

# tenon_llvm_stubs(TARGET architecture…): lld initializes every architecture and extension that its LLVM was built with; those
# that are not linked get functions that do nothing.
function(tenon_llvm_stubs target)
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
  add_library(tn_llvm_stubs STATIC ${source})
  target_include_directories(tn_llvm_stubs SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -fno-rtti SKIP_PRECOMPILE_HEADERS ON)
  set(stubs tn_llvm_stubs)
  if(NOT TENON_STATIC)
    set(stubs "$<$<BOOL:$<TARGET_PROPERTY:TENON_LLVM_INSIDE>>:tn_llvm_stubs>")
  endif()
  target_link_libraries(${target} PRIVATE "${stubs}")
endfunction()
