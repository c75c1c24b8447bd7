#include "runtime/values/places.h"

namespace tenon::runtime {

Home::Home(const Places* places) : places_(places) {
  if (places) device_.device_type = places->device_type;
}

int32_t Home::Find(const tn_ffi_any& given) {
  const tn_dl_tensor* t = Value::TensorOf(given);
  if (t && t->device.device_type != TN_DL_CPU) {
    if (!places_) return Fail("ValueError", "expected tensors on the CPU");
    if (t->device.device_type != places_->device_type)
      return Fail("ValueError", "expected tensors on the library's kind of device or on the CPU");
    if (found_ && t->device.device_id != device_.device_id)
      return Fail("ValueError", "expected tensors on one device");
    device_ = t->device;
    found_ = true;
  }
  const Value value = Value::Share(given);
  const tn_ffi_array* array = value.array();
  for (int64_t i = 0; array && i < array->size; ++i) {
    if (Find(array->data[i]) != 0) return -1;
  }
  return 0;
}

int32_t Home::Bring(Value* value, bool to_device) const {
  if (!places_) return 0;
  if (value->tensor()) return BringTensor(value, to_device);
  const tn_ffi_array* array = value->array();
  if (!array) return 0;
  List<tn_ffi_any> items;
  int32_t status = items.Reserve(array->size) ? 0 : OutOfMemory();
  for (int64_t i = 0; status == 0 && i < array->size; ++i) {
    Value item = Value::Share(array->data[i]);
    status = Bring(&item, to_device);
    if (status == 0) items.Append(item.Release());
  }
  if (status == 0) status = MakeSequence(&items, value);
  for (tn_ffi_any& item : items) Value::Take(item);
  return status;
}

// What is on another device of the kind goes there by way of the host.
int32_t Home::BringTensor(Value* value, bool to_device) const {
  const tn_dl_tensor* t = value->tensor();
  const bool on_device = t->device.device_type != TN_DL_CPU;
  if (!on_device && !to_device) return 0;
  if (on_device && to_device && t->device.device_id == device_.device_id) return 0;
  Value made;
  const int32_t status =
      on_device ? places_->to_host(*t, &made) : places_->to_device(*t, device_, &made);
  if (status != 0) return -1;
  *value = static_cast<Value&&>(made);
  return on_device && to_device ? BringTensor(value, true) : 0;
}

}  // namespace tenon::runtime
