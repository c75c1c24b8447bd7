# tenon_cross_core(ARCH): the runtime core and the libc stub for another Linux, in lib/tenon/ARCH-linux-gnu, where this
# machine has clang, lld and that libc's headers (Debian: libc6-dev-arm64-cross, libc6-dev-riscv64-cross); else a line that
# says what is missing. The core takes header-only parts of the C++ library alone, so the build machine's headers do.
find_program(TENON_CLANG NAMES clang++-19 clang++)
find_program(TENON_LLD NAMES ld.lld-19 ld.lld)
find_program(TENON_LLVM_AR NAMES llvm-ar-19 llvm-ar PATHS /usr/lib/llvm-19/bin)
set(TENON_CXX_HEADERS ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
list(FILTER TENON_CXX_HEADERS INCLUDE REGEX "/c\\+\\+")
list(TRANSFORM TENON_CXX_HEADERS PREPEND -isystem OUTPUT_VARIABLE TENON_CXX_HEADERS)

# Compiles sources with `flags` and puts the objects into `archive`. Headers after PRECOMPILED are compiled once for all of them.
function(tenon_cross_archive archive flags)
  cmake_parse_arguments(PARSE_ARGV 2 archive "" "" "PRECOMPILED")
  get_filename_component(folder ${archive} DIRECTORY)
  get_filename_component(triple ${folder} NAME)
  get_filename_component(archive_name ${archive} NAME_WE)
  set(objects_folder ${CMAKE_CURRENT_BINARY_DIR}/${archive_name}-${triple})
  set(objects)
  set(compile ${CMAKE_CXX_COMPILER_LAUNCHER} ${TENON_CLANG} ${flags} -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src)
  set(common)
  if(archive_PRECOMPILED AND TENON_PRECOMPILED_HEADERS)
    set(common ${objects_folder}/common.pch)
    list(TRANSFORM archive_PRECOMPILED PREPEND "#include " OUTPUT_VARIABLE lines)
    list(JOIN lines "\n" lines)
    file(CONFIGURE OUTPUT ${objects_folder}/common.h CONTENT "${lines}\n")
    add_custom_command(OUTPUT ${common}
      COMMAND ${compile} -x c++-header -Xclang -fno-pch-timestamp ${objects_folder}/common.h -o ${common}
      DEPENDS ${objects_folder}/common.h VERBATIM)
    list(APPEND compile -include-pch ${common} -Xclang -fno-pch-timestamp)
  endif()
  foreach(source IN LISTS archive_UNPARSED_ARGUMENTS)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src ${source})
    string(REPLACE "/" "_" name ${name})
    set(object ${objects_folder}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${folder} ${objects_folder}
      COMMAND ${compile} -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} ${common} DEPFILE ${object}.d VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${TENON_LLVM_AR} rcsD ${archive} ${objects}
    DEPENDS ${objects} VERBATIM)
endfunction()

function(tenon_cross_core arch)
  set(triple ${arch}-linux-gnu)
  set(headers /usr/${triple}/include)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL ${arch})
    return()
  endif()
  if(NOT TENON_CLANG OR NOT TENON_LLD OR NOT TENON_LLVM_AR OR NOT EXISTS ${headers}/sys/auxv.h)
    message(STATUS "no runtime core for ${triple}: it takes clang, lld and libc's headers in ${headers}")
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/lib/tenon/${triple})
  set(flags --target=${triple} -std=c++20 -nostdinc++ ${TENON_CXX_HEADERS} -isystem ${headers} ${TENON_CORE_FLAGS} -fPIC
            -fvisibility=hidden -fvisibility-inlines-hidden)
  if(arch STREQUAL aarch64)
    list(APPEND flags -mno-outline-atomics)  # their functions are the compiler's library's
  endif()
  tenon_cross_archive(${folder}/libtenon_core.a "${flags}" ${core_archive_sources} ${program_sources}
                      PRECOMPILED ${TENON_RUNTIME_HEADERS})
  tenon_libc_stub(${arch} ${folder} ${TENON_CLANG} --target=${triple} -fuse-ld=lld)
  add_custom_target(tenon_core_${arch} ALL DEPENDS ${folder}/libtenon_core.a ${folder}/libc_stub.so)
  install(FILES ${folder}/libtenon_core.a ${folder}/libc_stub.so DESTINATION ${CMAKE_INSTALL_LIBDIR}/tenon/${triple}
          COMPONENT runtime)
endfunction()

# tenon_cross_runtime(ARCH): libtenon_runtime, shared and static, beside the core of that machine where there is one: for
# programs that are compiled for it.
function(tenon_cross_runtime arch)
  if(NOT TARGET tenon_core_${arch})
    return()
  endif()
  set(triple ${arch}-linux-gnu)
  set(headers /usr/${triple}/include)
  set(folder ${CMAKE_BINARY_DIR}/lib/tenon/${triple})
  set(definitions ${in_core})
  list(FILTER definitions EXCLUDE REGEX TENON_IN_CORE)
  list(TRANSFORM definitions PREPEND -D)
  set(flags --target=${triple} -std=c++20 -nostdinc++ ${TENON_CXX_HEADERS} -isystem ${headers} ${runtime_flags} -O2 -DNDEBUG -g0
            ${definitions} -fPIC -fvisibility=hidden -fvisibility-inlines-hidden)
  list(REMOVE_ITEM flags -mtls-dialect=gnu2)  # x86's; elsewhere the default is right
  if(arch STREQUAL aarch64)
    list(APPEND flags -mno-outline-atomics)  # their functions are the compiler's library's
  endif()
  set(hidden "-DTN_API=__attribute__((visibility(\"hidden\")))" -DTENON_UNLOADS=1)
  tenon_cross_archive(${folder}/libtenon_runtime.a "${flags};${hidden}" ${runtime_sources}
                      PRECOMPILED ${TENON_RUNTIME_HEADERS})
  set(shown ${CMAKE_CURRENT_BINARY_DIR}/shown/${triple}/libtenon_runtime_shown.a)
  tenon_cross_archive(${shown} "${flags}" ${runtime_sources} PRECOMPILED ${TENON_RUNTIME_HEADERS})
  add_custom_command(OUTPUT ${folder}/libtenon_runtime.so
    COMMAND ${TENON_CLANG} --target=${triple} -fuse-ld=lld -shared -nostdlib -Wl,-soname,libtenon_runtime.so
            -Wl,-z,nodelete,--gc-sections,--as-needed,-O2,--icf=all,-s -o ${folder}/libtenon_runtime.so
            -Wl,--whole-archive ${shown} -Wl,--no-whole-archive
            -L/usr/${triple}/lib -lc
    DEPENDS ${shown} VERBATIM)
  add_custom_target(tenon_runtime_${arch} ALL DEPENDS ${folder}/libtenon_runtime.a ${folder}/libtenon_runtime.so)
  install(FILES ${folder}/libtenon_runtime.a ${folder}/libtenon_runtime.so
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/tenon/${triple} COMPONENT runtime OPTIONAL)
endfunction()

# tenon_wasm_core(): the same for WebAssembly, in lib/tenon/wasm32-unknown-unknown. It needs clang alone.
function(tenon_wasm_core)
  if(NOT TENON_CLANG OR NOT TENON_LLVM_AR)
    message(STATUS "no runtime core for wasm32: it takes clang and llvm-ar")
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/lib/tenon/wasm32-unknown-unknown)
  set(flags --target=wasm32-unknown-unknown -std=c++20 -ffreestanding -fno-builtin -nostdinc++ -nostdlibinc -mbulk-memory
            -isystem ${PROJECT_SOURCE_DIR}/src/runtime/wasm/include ${TENON_CORE_FLAGS} -fvisibility=hidden)
  list(TRANSFORM wasm_shared_sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/core/)
  file(GLOB own CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/wasm/*.cc)
  tenon_cross_archive(${folder}/libtenon_core.a "${flags}" ${own} ${wasm_shared_sources})
  add_custom_target(tenon_core_wasm32 ALL DEPENDS ${folder}/libtenon_core.a)
  install(FILES ${folder}/libtenon_core.a DESTINATION ${CMAKE_INSTALL_LIBDIR}/tenon/wasm32-unknown-unknown
          COMPONENT runtime)
endfunction()
