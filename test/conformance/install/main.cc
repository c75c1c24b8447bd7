#include <tenon/tenon.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    tenon::Session session(argv[1]);
    tenon::Tensor a = tenon::Tensor::Empty({3}, tenon::DataType::kFloat32);
    const float values[] = {1, 2, 3};
    a.CopyFromBytes(values, sizeof values);
    tenon::Tensor c = session.Run({{"a", a}, {"b", a}}).at("c");
    return c.data_as<float>()[2] == 6 ? 0 : 3;
  } catch (const tenon::Error& error) {
    std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.what());
    return 1;
  }
}
