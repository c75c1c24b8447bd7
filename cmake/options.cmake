# Warnings, sanitizers, linker and debug information for every target.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -fvisibility=hidden)
# The compiler's own floating-point arithmetic (cost estimates, constant folding) must give the same bits on every host.
add_compile_options(-ffp-contract=off)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Werror -Wno-missing-field-initializers -Wno-deprecated-declarations)
  add_link_options(-fuse-ld=lld)
endif()
if(TENON_SANITIZE)
  # vptr needs RTTI, which LLVM's headers forbid; function would read before the entry of generated code.
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-sanitize=vptr,function -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TENON_SANITIZE})
endif()
# Paths are hashed relative to the checkout, so that several checkouts share what they compile.
find_program(CCACHE ccache)
if(CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
