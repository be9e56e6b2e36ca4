# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# GPU kernels: found compilers, one image a source and runtime, all of them embedded in the library.

# A compiler counts as usable once it has compiled a kernel: the toolchains are found in more states
# than they work in. Success is remembered; a failure is asked again, in case it has been repaired.
function(doorbell_gpu_probe out compiler)
  string(MD5 key "${compiler} ${ARGN}")
  if(NOT DOORBELL_GPU_PROBE_${key})
    set(folder ${CMAKE_BINARY_DIR}/gpu-probe)
    file(WRITE ${folder}/probe.cu "extern \"C\" __global__ void probe(unsigned* p) { p[threadIdx.x] = 1; }\n")
    execute_process(COMMAND ${compiler} ${ARGN} ${folder}/probe.cu -o ${folder}/probe.image
                    RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
    get_filename_component(name ${compiler} NAME)
    file(WRITE ${folder}/${name}.log "${compiler} ${ARGN}\n${log}\n")
    if(failed)
      set(usable OFF)
    else()
      set(usable ON)
    endif()
    set(DOORBELL_GPU_PROBE_${key} ${usable} CACHE INTERNAL "")
  endif()
  set(${out} ${DOORBELL_GPU_PROBE_${key}} PARENT_SCOPE)
endfunction()

# The first "N.N.N" or "N.N" behind `pattern` in what `compiler --version` prints.
function(doorbell_gpu_version out compiler pattern)
  execute_process(COMMAND ${compiler} --version OUTPUT_VARIABLE text ERROR_QUIET)
  set(${out} "of unknown version" PARENT_SCOPE)
  if(text MATCHES "${pattern}([0-9]+[.][0-9]+([.][0-9]+)?)")
    set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
endfunction()

# For runtime `cuda` or `hip`, sets ${runtime}_compiler, _flags, _label, _targets, and _left_out, which
# is empty when the kernels can be built.
function(doorbell_gpu_toolchain runtime)
  set(compiler "")
  set(left_out "")
  if(runtime STREQUAL "cuda")
    # The folder is where scripts/fetch-nvcc.sh installs.
    file(GLOB fetched ${CMAKE_SOURCE_DIR}/build-tools/cuda/nvidia/cu*/bin)
    find_program(DOORBELL_NVCC nvcc HINTS ENV PATH PATHS ${fetched} NO_DEFAULT_PATH DOC "NVIDIA's compiler")
    set(compiler ${DOORBELL_NVCC})
    set(missing "nvcc is neither on PATH nor in build-tools/cuda (make GPU=1 fetches it)")
    list(TRANSFORM DOORBELL_CUDA_ARCHITECTURES PREPEND "sm_" OUTPUT_VARIABLE targets)
    list(JOIN targets ", " targets)
    string(APPEND targets ", PTX")
    set(images "")
    foreach(arch IN LISTS DOORBELL_CUDA_ARCHITECTURES)
      list(APPEND images -gencode arch=compute_${arch},code=sm_${arch})
    endforeach()
    list(GET DOORBELL_CUDA_ARCHITECTURES -1 newest)
    list(APPEND images -gencode arch=compute_${newest},code=compute_${newest})
    set(pattern "release [0-9.]+, V")
    set(flags -std=c++20 -O3 --fatbin ${images}
        --expt-relaxed-constexpr -Werror all-warnings -Xcompiler -Wall)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      list(APPEND flags -ccbin ${CMAKE_CXX_COMPILER})
    endif()
  else()
    find_program(DOORBELL_HIPCC hipcc DOC "AMD's compiler")
    set(compiler ${DOORBELL_HIPCC})
    set(missing "hipcc is not on PATH")
    set(targets "gfx90a, gfx1030")
    set(pattern "HIP version: ")
    # nvcc includes its runtime's header by itself; -include makes the sources the same for both. A loop that the optimizer
    # of one target does not unroll as asked (seen for gfx1030) is slower there and no error.
    set(flags -x hip -std=c++20 -O3 --genco --offload-arch=gfx90a --offload-arch=gfx1030
        -include hip/hip_runtime.h -Wall -Wextra -Werror -Wno-pass-failed)
  endif()

  if(DOORBELL_GPU STREQUAL "OFF")
    set(left_out "the build was configured with DOORBELL_GPU=OFF")
  elseif(NOT compiler)
    set(left_out "${missing}")
  else()
    doorbell_gpu_probe(usable ${compiler} ${flags})
    if(NOT usable)
      get_filename_component(name ${compiler} NAME)
      set(left_out "${compiler} cannot compile a kernel, see ${CMAKE_BINARY_DIR}/gpu-probe/${name}.log")
    endif()
  endif()

  set(${runtime}_left_out "${left_out}" PARENT_SCOPE)
  if(NOT left_out)
    get_filename_component(name ${compiler} NAME)
    doorbell_gpu_version(version ${compiler} "${pattern}")
    set(${runtime}_compiler ${compiler} PARENT_SCOPE)
    set(${runtime}_flags ${flags} PARENT_SCOPE)
    set(${runtime}_label "${name} ${version}" PARENT_SCOPE)
    set(${runtime}_targets "${targets}" PARENT_SCOPE)
  endif()
endfunction()

# doorbell_gpu_kernels(TARGET SOURCES...): compiles each source for every usable runtime and embeds the
# images in TARGET, with the table that src/gpu/code_objects.cpp includes.
function(doorbell_gpu_kernels target)
  if(NOT DOORBELL_GPU MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "DOORBELL_GPU is '${DOORBELL_GPU}': give AUTO, ON or OFF")
  endif()
  doorbell_gpu_toolchain(cuda)
  doorbell_gpu_toolchain(hip)
  if(DOORBELL_GPU STREQUAL "ON" AND cuda_left_out)
    message(FATAL_ERROR "DOORBELL_GPU=ON, but ${cuda_left_out}")
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/code_objects)
  file(MAKE_DIRECTORY ${folder})
  set(images "")
  set(assembly "")
  set(declarations "")
  set(rows "")
  set(count 0)
  set(summary "")
  foreach(runtime cuda hip)
    string(TOUPPER ${runtime} upper)
    if(${runtime}_left_out)
      list(APPEND summary "${upper} left out: ${${runtime}_left_out}")
      continue()
    endif()
    list(APPEND summary "${upper} by ${${runtime}_label} for ${${runtime}_targets}")
    foreach(source ${ARGN})
      get_filename_component(stem ${source} NAME_WE)
      set(image ${folder}/${stem}.${runtime})
      add_custom_command(OUTPUT ${image}
        COMMAND ${${runtime}_compiler} ${${runtime}_flags}
                -I ${CMAKE_SOURCE_DIR}/include -I ${CMAKE_SOURCE_DIR}/src
                -MD -MF ${image}.d -MT ${image} ${source} -o ${image}
        DEPENDS ${source} ${${runtime}_compiler}
        DEPFILE ${image}.d
        COMMENT "Building ${upper} kernels of ${stem}.cu"
        VERBATIM)
      list(APPEND images ${image})
      set(symbol doorbell_image_${count})
      string(APPEND assembly
        ".balign 4096\n.globl ${symbol}_begin, ${symbol}_end\n.hidden ${symbol}_begin, ${symbol}_end\n"
        "${symbol}_begin: .incbin \"${image}\"\n${symbol}_end:\n")
      string(APPEND declarations
        "extern \"C\" const std::byte ${symbol}_begin[];\nextern \"C\" const std::byte ${symbol}_end[];\n")
      string(APPEND rows "    Image{Runtime::${runtime}, \"${stem}\", ${symbol}_begin, ${symbol}_end},\n")
      math(EXPR count "${count} + 1")
    endforeach()
  endforeach()
  if(DOORBELL_GPU STREQUAL "OFF")
    set(summary "none, DOORBELL_GPU is OFF")
  endif()
  list(JOIN summary "; " line)
  message(STATUS "GPU kernels: ${line}")

  file(CONFIGURE OUTPUT ${folder}/code_object_table.inc @ONLY CONTENT
"// Written by cmake/gpu.cmake.
@declarations@
const std::array<Image, @count@> images = {{
@rows@}};
const KernelBuild cuda_build{\"@cuda_label@\", \"@cuda_targets@\", \"@cuda_left_out@\"};
const KernelBuild hip_build{\"@hip_label@\", \"@hip_targets@\", \"@hip_left_out@\"};
")
  file(CONFIGURE OUTPUT ${folder}/code_objects.S @ONLY CONTENT
"// Written by cmake/gpu.cmake.
.section .rodata
@assembly@
.section .note.GNU-stack,\"\",@progbits
")
  target_include_directories(${target} PRIVATE ${folder})
  target_sources(${target} PRIVATE ${folder}/code_objects.S)
  # The images are rules of this folder and the target may belong to another, so a target of their own
  # orders them; OBJECT_DEPENDS assembles again when an image changes.
  if(images)
    add_custom_target(${target}_gpu_images DEPENDS ${images})
    add_dependencies(${target} ${target}_gpu_images)
    set_source_files_properties(${folder}/code_objects.S TARGET_DIRECTORY ${target}
                                PROPERTIES OBJECT_DEPENDS "${images}")
  endif()
endfunction()
