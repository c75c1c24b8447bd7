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
endfunction()
