# cmake -DBUILD= -DSOURCE= -DMODULE= -DPYTHON= -DC= -DCXX= -DGENERATOR= -P run.cmake: installs a build tree somewhere,
# moves it, and builds and runs the project in SOURCE against it, by find_package and by pkg-config.
set(work ${BUILD}/test/install)
file(REMOVE_RECURSE ${work})
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
# flags_of(OUT PACKAGES...): what pkg-config says of installed packages.
function(flags_of out)
  file(GLOB_RECURSE package ${work}/prefix/*/tenon.pc)
  get_filename_component(folder ${package} DIRECTORY)
  get_filename_component(library_dir ${folder} DIRECTORY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --cflags --libs ${ARGN}
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(${out} ${flags} -Wl,-rpath,${library_dir} PARENT_SCOPE)
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
  foreach(packages tenon tenon-static "tenon;tenon-tvm-compat")
    flags_of(flags ${packages})
    if(packages MATCHES tvm)
      run(${CXX} -std=c++17 ${SOURCE}/tvm.cc -o ${work}/by_pkg_config ${flags})
    else()
      run(${C} ${SOURCE}/main.c -o ${work}/by_pkg_config ${flags})
    endif()
    run(${work}/by_pkg_config ${MODULE})
  endforeach()
endif()

# A DLPack on the path, before ours and behind it: one with what they all have, and that of TVM-FFI where it is.
set(dlpack_folders ${work}/own)
configure_file(${SOURCE}/own_dlpack.h ${work}/own/dlpack/dlpack.h COPYONLY)
execute_process(COMMAND ${PYTHON} -c "from tvm_ffi import libinfo; print(libinfo.find_dlpack_include_path())"
                OUTPUT_VARIABLE of_tvm_ffi OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(EXISTS "${of_tvm_ffi}/dlpack/dlpack.h")
  list(APPEND dlpack_folders ${of_tvm_ffi})
endif()
set(ours -I${work}/prefix/include/tenon/compat -I${work}/prefix/include)
foreach(folder IN LISTS dlpack_folders)
  foreach(order "-I${folder};${ours}" "${ours};-I${folder}" "${ours};-isystem;${folder}")
    run(${CXX} -std=c++17 -Wall -Wextra -Werror -fsyntax-only ${order} ${SOURCE}/dlpack.cc)
  endforeach()
endforeach()

# Runtimes for other machines, where this one can make them.
find_program(CLANG NAMES clang-19 clang)
foreach(arch aarch64 riscv64)
  if(EXISTS ${BUILD}/lib/tenon/${arch}-linux-gnu/libtenon_core.a)
    file(GLOB found ${work}/prefix/*/tenon/${arch}-linux-gnu/libtenon_runtime.*)
    list(LENGTH found count)
    if(NOT count EQUAL 2)
      message(FATAL_ERROR "expected a shared and a static runtime for ${arch} but found '${found}'")
    endif()
    # A plugin of that machine's, of which nothing is missing.
    list(GET found 0 folder)
    get_filename_component(folder ${folder} DIRECTORY)
    foreach(runtime ${folder}/libtenon_runtime.a ${folder}/libtenon_runtime.so)
      run(${CLANG} --target=${arch}-linux-gnu -isystem /usr/${arch}-linux-gnu/include -I${work}/prefix/include -fPIC -shared -nostdlib
          -fuse-ld=lld ${SOURCE}/main.c ${runtime} -o ${work}/plugin_${arch}.so -L/usr/${arch}-linux-gnu/lib -lc -Wl,--no-undefined)
    endforeach()
  endif()
endforeach()

# The compiler, where this tree has one: the command finds its cores where it was put.
execute_process(COMMAND ${PYTHON} ${SOURCE}/../../../bench/fill_weights.py ${work} mlp-4-2 RESULT_VARIABLE no_model OUTPUT_QUIET
                ERROR_QUIET)
if(NOT no_model AND EXISTS ${BUILD}/bin/tenon AND EXISTS ${BUILD}/lib/libtenon_compiler.so)
  run(${CMAKE_COMMAND} --install ${BUILD} --component compiler --prefix ${work}/prefix)
  run(${work}/prefix/bin/tenon compile ${work}/mlp-4-2.onnx -o ${work}/model.so -q)
  run(${work}/prefix/bin/tenon run ${work}/model.so --fill ones)
  if(PKG_CONFIG)
    flags_of(flags tenon-compiler)
    run(${CXX} -std=c++20 ${SOURCE}/../../../examples/tensor_expressions/vector_add.cc -o ${work}/with_compiler ${flags})
    run(${work}/with_compiler ${work}/add.so)
  endif()
  file(GLOB bound ${BUILD}/python/tenon/_tenon.*.so ${BUILD}/python/tenon/_tenon.pyi)
  list(LENGTH bound files)
  if(files EQUAL 2)
    run(${CMAKE_COMMAND} --install ${BUILD} --component python --prefix ${work}/prefix)
    file(GLOB place ${work}/prefix/lib/python*/site-packages)
    run(${CMAKE_COMMAND} -E env PYTHONPATH=${place} ${PYTHON} -c
        "import tenon; assert tenon.__file__.startswith('${place}'); tenon.load('${work}/model.so')")
  endif()
endif()
