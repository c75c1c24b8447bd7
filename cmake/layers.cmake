# tenon_precompile(TARGET LEVEL): the headers that most files include are compiled once for all targets of the same kind
# and the same level of optimisation. Saves a fifth of a cold build, and costs what ccache shares between checkouts.
option(TENON_PRECOMPILED_HEADERS "compile common headers once (Clang)" OFF)
function(tenon_precompile target level)
  if(NOT TENON_PRECOMPILED_HEADERS OR NOT TENON_BUILD_COMPILER OR NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  find_package(fmt REQUIRED)
  get_target_property(type ${target} TYPE)
  string(TOLOWER tenon_precompiled_${type}_${level} headers)
  if(NOT TARGET ${headers})
    set(source ${CMAKE_BINARY_DIR}/${headers}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    if(type STREQUAL "EXECUTABLE")  # its code is position-independent in another way than a library's
      file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
      add_executable(${headers} EXCLUDE_FROM_ALL ${source})
    else()
      add_library(${headers} STATIC EXCLUDE_FROM_ALL ${source})
    endif()
    target_link_libraries(${headers} PRIVATE fmt::fmt)
    target_compile_options(${headers} PRIVATE -Xclang -fno-pch-timestamp)
    if(level STREQUAL "hot" AND TENON_SANITIZE)
      target_compile_options(${headers} PRIVATE -O1)
    endif()
    target_precompile_headers(${headers} PRIVATE
      <algorithm> <array> <cmath> <cstdint> <cstring> <filesystem> <functional> <limits> <map> <memory> <numeric>
      <optional> <set> <span> <sstream> <string> <string_view> <unordered_map> <unordered_set> <utility> <variant>
      <vector> <fmt/format.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
  target_compile_options(${target} PRIVATE -Xclang -fno-pch-timestamp)
endfunction()

# Sanitizer builds are compiled for one run and do not optimise (CMakePresets.json), but for these floors and their
# tests, in which the time is spent.
set(TENON_HOT_FLOORS support ir arith loop loop_pass interp)
function(tenon_sanitized_level target floor)
  if(TENON_SANITIZE AND floor IN_LIST TENON_HOT_FLOORS)
    target_compile_options(${target} PRIVATE -O1)
    tenon_precompile(${target} hot)
  else()
    tenon_precompile(${target} cold)
  endif()
endfunction()

# tenon_layer(NAME FOLDER deps… [ROOMS folder…]): one static library per floor of src/. Sources are the *.cc files of its
# folder and of its rooms, the folders in it that are no floors, so a new file needs no edit here. `deps` repeats the table in
# scripts/check_layers.py.
function(tenon_layer name folder)
  cmake_parse_arguments(PARSE_ARGV 2 layer "" "" "ROOMS")
  set(ARGN ${layer_UNPARSED_ARGUMENTS})
  set(patterns ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  foreach(room IN LISTS layer_ROOMS)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/src/${folder}/${room}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(NOT sources)
    add_library(tn_${name} INTERFACE)
    target_link_libraries(tn_${name} INTERFACE ${ARGN})
    target_include_directories(tn_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    return()
  endif()
  add_library(tn_${name} STATIC ${sources})
  target_link_libraries(tn_${name} PUBLIC ${ARGN})
  target_include_directories(tn_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  tenon_sanitized_level(tn_${name} ${name})
endfunction()
