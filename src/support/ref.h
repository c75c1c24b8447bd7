// Intrusive reference counting for immutable nodes.
//
// Ref<T> is one pointer wide; T derives from RefCounted. Counting is atomic, so nodes may be shared
// between threads (they are immutable once made). A null Ref is allowed and tests false.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace tenon {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) : refs_(0) {}  // a copied node starts its own life
  RefCounted& operator=(const RefCounted&) { return *this; }
  virtual ~RefCounted() = default;

  void Retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  bool IsUnique() const { return refs_.load(std::memory_order_acquire) == 1; }

 private:
  mutable std::atomic<uint32_t> refs_{0};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* p) : p_(p) { Retain(); }
  Ref(const Ref& o) : p_(o.p_) { Retain(); }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& o) : p_(o.get()) {
    Retain();
  }
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& o) noexcept : p_(o.Detach()) {}
  ~Ref() {
    if (p_) p_->Release();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  /// Gives up ownership without releasing; the caller holds one count.
  T* Detach() { return std::exchange(p_, nullptr); }

  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }
  friend bool operator==(const Ref& a, std::nullptr_t) { return a.p_ == nullptr; }

 private:
  void Retain() const {
    if (p_) p_->Retain();
  }
  T* p_ = nullptr;
};

template <class T, class... Args>
Ref<T> MakeRef(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace tenon

template <class T>
struct std::hash<tenon::Ref<T>> {
  size_t operator()(const tenon::Ref<T>& r) const { return std::hash<const void*>()(r.get()); }
};
