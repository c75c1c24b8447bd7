# cmake -DBUILD= -DSOURCE= -DMODULE= -DPYTHON= -DC= -DCXX= -DGENERATOR= -P run.cmake: installs a build tree somewhere,
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
foreach(program consumer_runtime consumer_runtime_static consumer_c_runtime consumer_c_runtime_static consumer_tvm_runtime
                consumer_tvm_runtime_static)
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
  foreach(packages tenon tenon-static "tenon;tenon-tvm-compat")
    execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --cflags --libs ${packages}
                    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    if(packages MATCHES tvm)
      run(${CXX} -std=c++17 ${SOURCE}/tvm.cc -o ${work}/by_pkg_config ${flags} -Wl,-rpath,${library_dir})
    else()
      run(${C} ${SOURCE}/main.c -o ${work}/by_pkg_config ${flags} -Wl,-rpath,${library_dir})
    endif()
    run(${work}/by_pkg_config ${MODULE})
  endforeach()
endif()

# Runtimes for other machines, where this one can make them.
foreach(arch aarch64 riscv64)
  if(EXISTS ${BUILD}/lib/tenon/${arch}-linux-gnu/libtenon_core.a)
    file(GLOB found ${work}/prefix/*/tenon/${arch}-linux-gnu/libtenon_runtime.*)
    list(LENGTH found count)
    if(NOT count EQUAL 2)
      message(FATAL_ERROR "expected a shared and a static runtime for ${arch} but found '${found}'")
    endif()
  endif()
endforeach()

# The compiler, where this tree has one: the command finds its cores where it was put.
execute_process(COMMAND ${PYTHON} ${SOURCE}/../../../bench/fill_weights.py ${work} mlp-4-2 RESULT_VARIABLE no_model OUTPUT_QUIET
                ERROR_QUIET)
if(NOT no_model AND EXISTS ${BUILD}/bin/tenon AND EXISTS ${BUILD}/lib/libtenon_compiler.so)
  run(${CMAKE_COMMAND} --install ${BUILD} --component compiler --prefix ${work}/prefix)
  run(${work}/prefix/bin/tenon compile ${work}/mlp-4-2.onnx -o ${work}/model.so -q)
  run(${work}/prefix/bin/tenon run ${work}/model.so --fill ones)
  file(GLOB bound ${BUILD}/python/tenon/_tenon.*.so ${BUILD}/python/tenon/_tenon.pyi)
  list(LENGTH bound files)
  if(files EQUAL 2)
    run(${CMAKE_COMMAND} --install ${BUILD} --component python --prefix ${work}/prefix)
    file(GLOB place ${work}/prefix/lib/python*/site-packages)
    run(${CMAKE_COMMAND} -E env PYTHONPATH=${place} ${PYTHON} -c
        "import tenon; assert tenon.__file__.startswith('${place}'); tenon.load('${work}/model.so')")
  endif()
endif()
