// Launches that begin while the one before them on their stream runs, from sm_90 on. PTX ISA,
// griddepcontrol. They mean nothing to a launch that has not been made so. One text is compiled for
// several architectures: code for older ones has nothing in their place, and is never launched so.
#include "intrin/tile_intrinsic.h"

namespace tenon {

namespace {

void Add(TileIntrinsics* table, const std::string& name, const std::string& text) {
  table->Add(
      {.name = name,
       .feature = "",
       .state = "",
       .meaning = "func @" + name + "() kind device { }",
       .pattern = "",
       .emissions = {
           {Emission::Kind::kCuda, "#if __CUDA_ARCH__ >= 900\n  " + text + "\n  #endif", {}, ""}}});
}

}  // namespace

void RegisterPtxLaunch(TileIntrinsics* table) {
  Add(table, kLaunchWaitRow, R"(asm volatile("griddepcontrol.wait;" ::: "memory");)");
  Add(table, kLaunchBeginRow, R"(asm volatile("griddepcontrol.launch_dependents;");)");
}

}  // namespace tenon
