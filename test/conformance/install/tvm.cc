// Code for TVM's C++ runtime.
#include <tvm/runtime/module.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    tvm::runtime::Module lib = tvm::runtime::Module::LoadFromFile(argv[1]);
    tvm::runtime::Module run = lib.GetFunction("default")(DLDevice{kDLCPU, 0});
    tvm::runtime::NDArray a =
        tvm::runtime::NDArray::Empty({3}, DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
    const float values[] = {1, 2, 3};
    a.CopyFromBytes(values, sizeof values);
    run.GetFunction("set_input")("a", a);
    run.GetFunction("set_input")("b", a);
    run.GetFunction("run")();
    tvm::runtime::NDArray c = run.GetFunction("get_output")(0);
    return static_cast<float*>(c->data)[2] == 6 ? 0 : 3;
  } catch (const tvm::runtime::Error& error) {
    std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.what());
    return 1;
  }
}
