# cmake -DBUILD= -DSOURCE= -DMODULE= -DC= -DCXX= -DGENERATOR= -P run.cmake: installs the runtime of a build tree somewhere,
# moves it, and builds and runs the project in SOURCE against it, by find_package and by pkg-config.
set(work ${BUILD}/test/install)
file(REMOVE_RECURSE ${work})
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --component runtime --prefix ${work}/first)
file(RENAME ${work}/first ${work}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${work}/build -G ${GENERATOR} -DCMAKE_C_COMPILER=${C} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
foreach(program consumer_runtime consumer_runtime_static consumer_c_runtime consumer_c_runtime_static)
  run(${work}/build/${program} ${MODULE})
endforeach()

# From the build folder, without installing.
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${work}/in_place -G ${GENERATOR} -DCMAKE_C_COMPILER=${C} -DCMAKE_CXX_COMPILER=${CXX}
    -DTenon_DIR=${BUILD})
run(${CMAKE_COMMAND} --build ${work}/in_place --target consumer_runtime)
run(${work}/in_place/consumer_runtime ${MODULE})

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE package ${work}/prefix/*/tenon.pc)
  get_filename_component(folder ${package} DIRECTORY)
  get_filename_component(library_dir ${folder} DIRECTORY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --cflags --libs tenon
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${C} ${SOURCE}/main.c -o ${work}/by_pkg_config ${flags} -Wl,-rpath,${library_dir})
  run(${work}/by_pkg_config ${MODULE})
endif()
