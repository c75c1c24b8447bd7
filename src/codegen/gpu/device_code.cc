#include "codegen/gpu/device_code.h"

#include <algorithm>
#include <cstring>

#include "codegen/gpu/launch.h"
#include "intrin/ptx_hopper.h"
#include "loop/aligned_form.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"
#include "support/check.h"
#include "tenon/ffi_types.h"
#include "tenon/kernel_abi.h"

namespace tenon::codegen {

namespace {

constexpr size_t kImageAlign = 64;

// Appends behind a header of fixed size and fills the header in last.
class Packer {
 public:
  Packer(size_t kernels, size_t images)
      : kernels_(kernels),
        images_(images),
        bytes_(sizeof(tn_device_code) + kernels * sizeof(tn_device_kernel) +
                   images * sizeof(tn_device_image),
               '\0') {}

  uint32_t Text(const std::string& text) { return static_cast<uint32_t>(Append(text + '\0', 1)); }

  uint64_t Append(const std::string& data, size_t align) {
    bytes_.resize((bytes_.size() + align - 1) / align * align);
    const uint64_t at = bytes_.size();
    bytes_ += data;
    return at;
  }

  void Kernel(size_t i, const tn_device_kernel& row) { Put(KernelAt(i), row); }
  void Image(size_t i, const tn_device_image& row) {
    Put(KernelAt(kernels_) + i * sizeof(tn_device_image), row);
  }

  std::string Finish(int64_t device_type, size_t num_parts, uint64_t part_of) {
    Put(0, tn_device_code{sizeof(tn_device_code), static_cast<int32_t>(device_type),
                          static_cast<uint32_t>(kernels_), static_cast<uint32_t>(images_),
                          static_cast<uint32_t>(num_parts), static_cast<uint32_t>(part_of)});
    return std::move(bytes_);
  }

 private:
  static size_t KernelAt(size_t i) { return sizeof(tn_device_code) + i * sizeof(tn_device_kernel); }
  template <class T>
  void Put(size_t at, const T& row) {
    std::memcpy(bytes_.data() + at, &row, sizeof row);
  }

  const size_t kernels_, images_;
  std::string bytes_;
};

bool IsMap(const PrimFunc& kernel, const BufferNode& buffer) {
  const auto maps = kernel.attrs.Get<std::vector<std::string>>(kTensorMapsAttr, {});
  return std::find(maps.begin(), maps.end(), buffer.name) != maps.end();
}

// A byte per parameter: 0 for a buffer (or working memory, an address too), else its value's size.
// `form` is the kernel, or its aligned form where it has one.
std::string ParamsOf(const PrimFunc& kernel, const PrimFunc& form) {
  std::string out;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const bool map = IsMap(kernel, *kernel.buffers[i]);
    const bool aligned_map = !map && IsMap(form, *form.buffers[i]);
    out += static_cast<char>(map ? TN_PARAM_TENSOR_MAP : aligned_map ? TN_PARAM_ALIGNED_MAP : 0);
  }
  out.append(kernel.dims.size(), '\x08');
  for (const Var& v : kernel.scalars) {
    out += static_cast<char>(v->dtype.IsHandle() ? 0 : v->dtype.Bytes());
  }
  return out;
}

void ReadSize(const PrimFunc& kernel, const std::string& size, int64_t* value, int32_t* param) {
  for (size_t i = 0; i < kernel.dims.size(); ++i) {
    if (kernel.dims[i]->name == size) *param = static_cast<int32_t>(kernel.buffers.size() + i);
  }
  if (*param < 0) *value = std::stoll(size);
}

// Their sizes are attributes of the kernel: its buffers are flat by now.
std::string MapsOf(const PrimFunc& kernel) {
  const auto sizes = kernel.attrs.Get<std::vector<std::string>>(kTensorSizesAttr, {});
  std::string out;
  size_t next = 0;
  for (const Buffer& b : kernel.buffers) {
    if (!IsMap(kernel, *b)) continue;
    tn_device_map map = {};
    map.rows_param = map.columns_param = -1;
    ReadSize(kernel, sizes.at(next++), &map.rows, &map.rows_param);
    ReadSize(kernel, sizes.at(next++), &map.columns, &map.columns_param);
    map.box_rows = map.box_columns = kBulkCopySide;
    map.type_code =
        static_cast<uint32_t>(b->dtype == DType::BFloat16() ? TN_DL_BFLOAT : TN_DL_FLOAT);
    map.type_bits = static_cast<uint32_t>(b->dtype.bits);
    out.append(reinterpret_cast<const char*>(&map), sizeof map);
  }
  return out;
}

// The table behind tn_device_code's part_of.
std::string PartOfEach(const std::vector<Func>& kernels, const std::vector<KernelPart>& parts) {
  std::map<std::string_view, uint32_t> part_of;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const std::string& kernel : parts[i]) part_of[kernel] = static_cast<uint32_t>(i);
  }
  std::string out;
  for (const Func& kernel : kernels) {
    const uint32_t part = parts.empty() ? 0 : part_of.at(kernel->name);
    out.append(reinterpret_cast<const char*>(&part), sizeof part);
  }
  return out;
}

}  // namespace

Expected<std::vector<DataBlob>> PackDeviceCode(const std::vector<Func>& all, const Target& target,
                                               const DeviceCode& code) {
  std::vector<Func> kernels;
  std::map<std::string, Func> forms;
  for (const Func& k : all) {
    if (k->attrs.Has(kIsAlignedAttr)) {
      forms[k->name] = k;
    } else {
      kernels.push_back(k);
    }
  }
  const size_t num_parts = std::max<size_t>(code.parts.size(), 1);
  Packer packer(kernels.size(), code.images.size() * num_parts);
  for (size_t i = 0; i < kernels.size(); ++i) {
    TN_ASSIGN_OR_RETURN(const GpuLaunch launch, LaunchOf(*kernels[i], target));
    const auto aligned = kernels[i]->attrs.Get<std::string>(kAlignedFormAttr, "");
    const Func& form = aligned.empty() ? kernels[i] : forms[aligned];
    TN_CHECK(form, "no kernel has the name {}", aligned);
    const std::string params = ParamsOf(*kernels[i], *form);
    tn_device_kernel row = {};
    row.name = packer.Text(kernels[i]->name);
    row.shared_bytes = launch.dynamic_shared ? static_cast<uint32_t>(launch.shared_bytes) : 0;
    row.params = static_cast<uint32_t>(packer.Append(params, 1));
    // The runtime looks for them right behind the parameters.
    if (const std::string maps = MapsOf(*form); !maps.empty()) packer.Append(maps, 8);
    row.num_params = static_cast<uint32_t>(params.size());
    for (size_t k = 0; k < 3; ++k) row.cluster[k] = static_cast<uint8_t>(launch.cluster[k]);
    row.launch = static_cast<uint8_t>((launch.cooperative ? TN_LAUNCH_COOPERATIVE : 0) |
                                      (launch.dependent ? TN_LAUNCH_DEPENDENT : 0));
    if (!aligned.empty()) row.aligned = packer.Text(aligned);
    packer.Kernel(i, row);
  }
  const uint64_t part_of = packer.Append(PartOfEach(kernels, code.parts), alignof(uint32_t));
  for (size_t i = 0; i < code.images.size(); ++i) {
    const DeviceImage& image = code.images[i];
    const uint32_t form = packer.Text(image.form);
    for (size_t part = 0; part < num_parts; ++part) {
      tn_device_image row = {};
      row.form = form;
      row.offset = packer.Append(image.parts[part], kImageAlign);
      row.bytes = image.parts[part].size();
      row.without = image.overlaps ? 0 : TN_LAUNCH_DEPENDENT;
      packer.Image(i * num_parts + part, row);
    }
  }
  return std::vector<DataBlob>{
      {"tn_blob_device_code", packer.Finish(target.device().type, num_parts, part_of), kImageAlign,
       false, false},
      {"tn_blob_device_state", std::string(TN_DEVICE_STATE_BYTES, '\0'), 64, false, true}};
}

}  // namespace tenon::codegen
