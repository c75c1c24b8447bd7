// Reads one printed line of text from a PNG with a recogniser that Tenon has compiled.
//
//   ocr RECOGNISER.so PICTURE.png
//
// Needs Tenon's runtime and libpng, nothing of the compiler. The recogniser is of the PP-OCR
// family: a picture of a line goes in, and for each of a row of narrow windows a probability per
// character comes out. Its alphabet travels in the model's metadata and so in the compiled library.
#include <png.h>
#include <tenon/tenon.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> rgb;  // height × width × 3

  float At(int64_t y, int64_t x, int64_t channel) const {
    return rgb[(y * width + x) * 3 + channel];
  }
};

Picture ReadPng(const std::string& path) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_file(&image, path.c_str())) {
    throw std::runtime_error(path + ": " + image.message);
  }
  image.format = PNG_FORMAT_RGB;
  Picture picture;
  picture.height = image.height;
  picture.width = image.width;
  picture.rgb.resize(PNG_IMAGE_SIZE(image));
  const png_color white = {255, 255, 255};  // behind transparent pixels
  if (!png_image_finish_read(&image, &white, picture.rgb.data(), 0, nullptr)) {
    throw std::runtime_error(path + ": " + image.message);
  }
  return picture;
}

// Where pixel `i` of `to` pixels lies among `from` pixels: the two neighbours and the weight of the
// second.
struct Sample {
  int64_t first;
  int64_t second;
  float weight;
};

Sample SampleAt(int64_t i, int64_t to, int64_t from) {
  const float centre = (i + 0.5f) * from / to - 0.5f;
  const float position = std::clamp(centre, 0.0f, static_cast<float>(from - 1));
  const auto first = static_cast<int64_t>(position);
  return {first, std::min(first + 1, from - 1), position - first};
}

// The picture at the model's height with its aspect kept (or squeezed where it is too long), as
// planes B, G, R of values in [-1, 1]. What is left on the right is 0.
std::vector<float> Preprocess(const Picture& picture, int64_t height, int64_t width) {
  const auto wanted =
      static_cast<int64_t>(std::ceil(static_cast<double>(height) * picture.width / picture.height));
  const int64_t used = std::min(width, wanted);
  std::vector<float> planes(3 * height * width, 0.0f);
  for (int64_t y = 0; y < height; ++y) {
    const Sample v = SampleAt(y, height, picture.height);
    for (int64_t x = 0; x < used; ++x) {
      const Sample h = SampleAt(x, used, picture.width);
      for (int64_t channel = 0; channel < 3; ++channel) {
        const float top = std::lerp(picture.At(v.first, h.first, channel),
                                    picture.At(v.first, h.second, channel), h.weight);
        const float low = std::lerp(picture.At(v.second, h.first, channel),
                                    picture.At(v.second, h.second, channel), h.weight);
        const float value = std::lerp(top, low, v.weight);
        planes[((2 - channel) * height + y) * width + x] = (value / 255 - 0.5f) / 0.5f;
      }
    }
  }
  return planes;
}

// Class 0 is "no character", then come the metadata's lines, then the space.
std::vector<std::string> ReadAlphabet(const tenon::Module& module) {
  const std::string text = module.GetMetadata("character");
  std::vector<std::string> alphabet = {""};
  size_t start = 0;
  for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    alphabet.push_back(text.substr(start, end - start));
  }
  if (start < text.size()) alphabet.push_back(text.substr(start));
  alphabet.push_back(" ");
  return alphabet;
}

// Connectionist temporal classification, greedily: the likeliest class of each window; equal
// neighbours are one character, and class 0 between two equal ones keeps them apart.
std::string Decode(const float* probabilities, int64_t windows, int64_t classes,
                   const std::vector<std::string>& alphabet) {
  std::string text;
  int64_t previous = 0;
  for (int64_t i = 0; i < windows; ++i) {
    const float* row = probabilities + i * classes;
    const int64_t best = std::max_element(row, row + classes) - row;
    if (best != previous) text += alphabet[best];
    previous = best;
  }
  return text;
}

// The median of several calls in milliseconds, after one that warms up.
double MeasureLatency(const tenon::Function& recognise, const tenon::Tensor& input,
                      const tenon::Tensor& output) {
  std::vector<double> times;
  recognise(input, output);
  for (int i = 0; i < 21; ++i) {
    const auto start = std::chrono::steady_clock::now();
    recognise(input, output);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

void Run(const std::string& library, const std::string& path) {
  const tenon::Module module = tenon::Module::LoadFromFile(library);
  const tenon::Function recognise = module.GetFunction("main");
  const std::vector<int64_t> shape = module.Inputs().at(0).shape;
  if (shape.size() != 4 || shape[0] != 1 || shape[1] != 3 || shape[2] <= 0 || shape[3] <= 0) {
    throw std::runtime_error(
        library + ": expected a model compiled for one picture, as with --shape x:1x3x48x320");
  }
  std::vector<float> planes = Preprocess(ReadPng(path), shape[2], shape[3]);
  const tenon::Tensor input = tenon::Tensor::Wrap(planes.data(), shape, tenon::DataType::kFloat32);
  const tenon::Tensor output = recognise(input);

  const std::vector<std::string> alphabet = ReadAlphabet(module);
  const std::vector<int64_t> result = output.shape();  // 1 × windows × classes
  if (result.size() != 3 || result[2] != static_cast<int64_t>(alphabet.size())) {
    throw std::runtime_error(library + ": expected as many classes as the alphabet has characters");
  }
  std::printf("%s\n", Decode(output.data_as<float>(), result[1], result[2], alphabet).c_str());
  std::printf("latency: %.2f ms\n", MeasureLatency(recognise, input, output));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ocr RECOGNISER.so PICTURE.png\n");
    return 2;
  }
  try {
    Run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ocr: %s\n", error.what());
    return 1;
  }
  return 0;
}
