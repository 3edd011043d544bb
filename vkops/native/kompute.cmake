# Kompute's own CMakeLists.txt includes this file: CMAKE_PROJECT_kompute_INCLUDE names it.
# fmt is compiled into both modules: they need no libfmt.so where they run.
add_compile_definitions(FMT_HEADER_ONLY)
add_link_options(LINKER:--as-needed)

set(VKOPS_NATIVE "${CMAKE_CURRENT_LIST_DIR}")
function(add_vkops_native)
  pybind11_add_module(vkops_native "${VKOPS_NATIVE}/module.cpp")
  set_target_properties(vkops_native PROPERTIES CXX_STANDARD 17)
  target_link_libraries(vkops_native PRIVATE kompute::kompute)
  target_compile_options(kp PRIVATE -include "${VKOPS_NATIVE}/without_gil.hpp")
endfunction()
cmake_language(DEFER CALL add_vkops_native) # when Kompute's targets exist
