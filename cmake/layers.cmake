# Sanitizer builds are compiled for one run and do not optimise (CMakePresets.json), but for these floors and their
# tests, in which the time is spent.
set(TENON_HOT_FLOORS support ir arith loop loop_pass interp)
function(tenon_sanitized_level target floor)
  if(TENON_SANITIZE AND floor IN_LIST TENON_HOT_FLOORS)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# tenon_layer(NAME FOLDER deps…): one static library per folder of src/. Sources are the folder's own *.cc files (not its
# subfolders'), so a new file needs no edit here. `deps` repeats the table in scripts/check_layers.py.
function(tenon_layer name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
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
